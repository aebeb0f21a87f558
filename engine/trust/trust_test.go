package trust

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What is signed here ssh-keygen verifies, and the other way round, for each kind of key.
func TestSSHKeygenAgrees(t *testing.T) {
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip("no ssh-keygen")
	}
	for _, kind := range []string{"ed25519", "ecdsa", "rsa"} {
		t.Run(kind, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "key")
			say := func(in string, name string, args ...string) string {
				cmd := exec.Command(name, args...)
				cmd.Stdin = strings.NewReader(in)
				out, err := cmd.Output()
				if err != nil {
					t.Fatalf("%s %v: %v", name, args, err)
				}
				return string(out)
			}
			say("", "ssh-keygen", "-q", "-t", kind, "-N", "", "-C", "ada", "-f", file)
			key, err := OpenKey(file)
			if err != nil {
				t.Fatal(err)
			}
			const payload = "tree 123\n\nmessage\n"
			armored, err := key.Sign([]byte(payload))
			if err != nil {
				t.Fatal(err)
			}
			list := filepath.Join(dir, "signers")
			sig := filepath.Join(dir, "sig")
			for name, text := range map[string]string{list: "ada@example.org " + key.Public() + "\n", sig: armored} {
				if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			say(payload, "ssh-keygen", "-Y", "verify", "-f", list, "-I", "ada@example.org", "-n", "git", "-s", sig)
			theirs := say(payload, "ssh-keygen", "-Y", "sign", "-f", file, "-n", "git")
			signers := ParseSigners([]byte("# people\nada@example.org namespaces=\"git\" " + key.Public() + "\nbob@example.org cert-authority " + key.Public() + "\n"))
			for _, s := range []string{armored, theirs} {
				who, fingerprint, err := signers.Vouch([]byte(payload), s)
				if err != nil || who != "ada@example.org" || !strings.Contains(say("", "ssh-keygen", "-lf", file), " "+fingerprint+" ") {
					t.Errorf("vouch: %q, %v", who, err)
				}
				if _, _, err := signers.Vouch([]byte(payload+"."), s); err == nil {
					t.Error("a signature of other bytes counts")
				}
			}
			if _, _, err := ParseSigners([]byte("ada namespaces=\"file\" "+key.Public())).Vouch([]byte(payload), theirs); err == nil {
				t.Error("a key that is listed for files counts")
			}
			if _, _, err := signers.Vouch([]byte(payload), say(payload, "ssh-keygen", "-Y", "sign", "-f", file, "-n", "file")); err == nil {
				t.Error("a signature for files counts")
			}
		})
	}
}
