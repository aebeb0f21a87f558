package notices_test

import (
	"fmt"
	"net"
	"net/mail"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bagpipe/testdata/sample"
)

// eximConfig has a server that takes mail for example.org into one file, but for some.
const eximConfig = `primary_hostname = mail.example.org
daemon_smtp_ports = %[2]s
local_interfaces = 127.0.0.1
tls_advertise_hosts = *
tls_certificate = %[1]s/cert.pem
tls_privatekey = %[1]s/key.pem
spool_directory = %[1]s/spool
log_file_path = %[1]s/%%slog
acl_smtp_rcpt = rcpt
host_lookup =
keep_environment =
deliver_drop_privilege
begin acl
rcpt:
  deny local_parts = nobody
  defer local_parts = later
  accept domains = example.org
begin routers
all:
  driver = accept
  transport = file
begin transports
file:
  driver = appendfile
  file = %[1]s/mail/got
  no_mode_fail_narrower
`

// exim starts a mail server of Debian's, and gives its address and its folder.
func exim(t *testing.T) (address, dir string) {
	t.Helper()
	program, err := exec.LookPath("/usr/sbin/exim4")
	if err != nil || os.Getuid() != 0 {
		t.Skip("exim4 is not here, or not to be started: ", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address = l.Addr().String()
	_, port, _ := net.SplitHostPort(address)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(l.Close())
	dir = sample.TempDir(t)
	for _, name := range []string{"spool", "mail"} {
		must(os.MkdirAll(filepath.Join(dir, name), 0o777))
		must(os.Chmod(filepath.Join(dir, name), 0o777))
	}
	for at := dir; at != os.TempDir() && at != "/"; at = filepath.Dir(at) { // exim works as an account of its own
		must(os.Chmod(at, 0o755))
	}
	must(os.Chmod(dir, 0o777))
	if out, err := exec.Command("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1",
		"-addext", "subjectAltName=IP:127.0.0.1", "-keyout", filepath.Join(dir, "key.pem"), "-out", filepath.Join(dir, "cert.pem")).CombinedOutput(); err != nil {
		t.Skipf("%v: %s", err, out)
	}
	must(os.Chmod(filepath.Join(dir, "key.pem"), 0o644))
	config := filepath.Join(dir, "conf")
	must(os.WriteFile(config, fmt.Appendf(nil, eximConfig, dir, port), 0o644))
	cmd := exec.Command(program, "-C", config, "-bdf")
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	must(cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // ended already: nothing to kill
		_ = cmd.Wait()
		if t.Failed() {
			log, _ := os.ReadFile(filepath.Join(dir, "mainlog"))
			t.Logf("%s\n%s", out.String(), log)
		}
	})
	await(t, func() bool {
		conn, err := net.Dial("tcp", address)
		return err == nil && conn.Close() == nil
	})
	return address, dir
}

func await(t *testing.T, yes func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !yes(); {
		if time.Now().After(end) {
			t.Fatal("it does not come")
		}
		<-time.After(20 * time.Millisecond)
	}
}

// A mail server of others', which refuses one for good and one for now, has the digest for the third, once.
func TestMailByAServerOfOthers(t *testing.T) {
	address, dir := exim(t)
	b := newBench(t, fmt.Sprintf("{mail: {server: '%s', from: 'Archive <bp@example.org>', to: [nobody@example.org, 'Ada <ada@example.org>', later@example.org]}, ca: '%s'}", address, filepath.Join(dir, "cert.pem")))
	b.fail(2)
	got := func() string {
		data, _ := os.ReadFile(filepath.Join(dir, "mail/got"))
		return string(data)
	}
	await(t, func() bool { return strings.Contains(got(), "2 failed") })
	_, text, _ := strings.Cut(got(), "\n") // after the line of the mailbox
	m, err := mail.ReadMessage(strings.NewReader(text))
	b.must(err)
	if m.Header.Get("Subject") != "bagpipe: 2 failed" || !strings.HasPrefix(m.Header.Get("Message-Id"), "<msg_") || !strings.Contains(m.Header.Get("Received"), "TLS") && !strings.Contains(m.Header.Get("Received"), "esmtps") {
		t.Errorf("%v", m.Header)
	}
	b.clock.Move(2 * time.Hour)
	if err := b.e.Notices.Tell(t.Context(), false); err == nil || !strings.Contains(err.Error(), "tried again: the mail server refused everybody: later@example.org: 451") {
		t.Error(err)
	}
	if n := strings.Count(got(), "Message-ID: <msg_"); n != 1 {
		t.Errorf("told %d times:\n%s", n, got())
	}
}
