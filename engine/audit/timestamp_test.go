package audit_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"bagpipe/engine"
	"bagpipe/engine/audit"
)

// An anchor is stamped with the time by OpenSSL's authority, and openssl ts -verify agrees; an
// answer about something else is refused.
func TestAnAnchorIsStamped(t *testing.T) {
	for _, program := range []string{"openssl", "ssh-keygen"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("no %s; testdata/tools.sh installs it", program)
		}
	}
	dir := t.TempDir()
	say := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	config := `[req]
distinguished_name = name
x509_extensions = usage
prompt = no
[name]
CN = time
[usage]
extendedKeyUsage = critical,timeStamping
[tsa]
default_tsa = one
[one]
serial = serial
crypto_device = builtin
signer_cert = cert.pem
certs = cert.pem
signer_key = key.pem
signer_digest = sha256
default_policy = 1.2.3.4
digests = sha256
accuracy = secs:1
ess_cert_id_alg = sha256
`
	for name, text := range map[string]string{"tsa.cnf": config, "serial": "01\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	say("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "cert.pem", "-days", "2", "-config", "tsa.cnf")
	say("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, "anchorkey"))
	var kept []byte // an answer to another question
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query, err := io.ReadAll(r.Body)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "query"), query, 0o600)
		}
		if err != nil || r.Header.Get("Content-Type") != "application/timestamp-query" {
			http.Error(w, fmt.Sprint(err), http.StatusBadRequest)
			return
		}
		if r.URL.Path == "/other" {
			_, _ = w.Write(kept)
			return
		}
		cmd := exec.Command("openssl", "ts", "-reply", "-config", "tsa.cnf", "-queryfile", "query", "-out", "reply")
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			http.Error(w, string(out), http.StatusInternalServerError)
			return
		}
		kept, _ = os.ReadFile(filepath.Join(dir, "reply"))
		w.Header().Set("Content-Type", "application/timestamp-reply")
		_, _ = w.Write(kept)
	}))
	defer server.Close()

	root := worked(t)
	ctx := context.Background()
	e, err := engine.Open(ctx, root, options())
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	a := audit.New(e.Ledger, e.Guard)
	name, err := a.Anchor(ctx, filepath.Join(dir, "anchorkey"))
	if err != nil {
		t.Fatal(err)
	}
	path, err := a.Timestamp(ctx, name, server.URL)
	if err != nil {
		t.Fatal(err)
	}
	for file, data := range map[string][]byte{"token": git(t, root, nil, "show", "main:"+path), "tag": git(t, root, nil, "cat-file", "tag", name)} {
		if err := os.WriteFile(filepath.Join(dir, file), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	say("openssl", "ts", "-verify", "-in", "token", "-data", "tag", "-CAfile", "cert.pem")
	if _, err := a.Timestamp(ctx, name, server.URL+"/other"); err == nil {
		t.Error("a time stamp of another question is taken")
	}
	if _, found := audited(t, root); len(found) != 1 || found[0].Kind != audit.Signature { // nobody is listed
		t.Errorf("findings: %v", found)
	}
}
