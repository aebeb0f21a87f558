package targettest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"bagpipe/steps/target"
)

// NewSSHD starts OpenSSH's server with fresh keys of two kinds, of which the second is known; it
// ends with the test. options are its SFTP server's, such as -R, or -P with requests that it is not
// to offer. Where there is no sshd the test is skipped.
func NewSSHD(t testing.TB, options ...string) target.SFTPConfig {
	t.Helper()
	program := "/usr/sbin/sshd"
	sftp := "/usr/lib/openssh/sftp-server"
	for _, p := range []string{program, sftp} {
		if _, err := os.Stat(p); err != nil {
			t.Skip(err)
		}
	}
	me, err := user.Current()
	must(t, err)
	if me.Uid == "0" {
		must(t, os.MkdirAll("/run/sshd", 0o755))
	}
	dir := t.TempDir()
	key := func(name, kind string) ssh.PublicKey {
		out, err := exec.Command("ssh-keygen", "-q", "-t", kind, "-N", "", "-f", filepath.Join(dir, name)).CombinedOutput()
		if err != nil {
			t.Fatalf("ssh-keygen: %v: %s", err, out)
		}
		text, err := os.ReadFile(filepath.Join(dir, name+".pub"))
		must(t, err)
		public, _, _, _, err := ssh.ParseAuthorizedKey(text)
		must(t, err)
		return public
	}
	key("host-ecdsa", "ecdsa")
	host, _ := key("host-ed25519", "ed25519"), key("client", "ed25519")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	address := l.Addr().String()
	must(t, l.Close())
	_, port, err := net.SplitHostPort(address)
	must(t, err)
	config := filepath.Join(dir, "config") // the home is an empty one: a shell reads what is there before each command
	must(t, os.WriteFile(config, []byte(strings.Join([]string{
		"Port " + port, "ListenAddress 127.0.0.1", "HostKey " + filepath.Join(dir, "host-ecdsa"), "HostKey " + filepath.Join(dir, "host-ed25519"),
		"AuthorizedKeysFile " + filepath.Join(dir, "client.pub"), "StrictModes no", "UsePAM no", "PasswordAuthentication no", "PermitRootLogin prohibit-password",
		"PidFile none", "Subsystem sftp " + sftp + " " + strings.Join(options, " "), "LogLevel ERROR",
		"SetEnv HOME=" + dir, ""}, "\n")), 0o600))
	cmd := exec.Command(program, "-D", "-e", "-f", config)
	log, err := os.Create(filepath.Join(dir, "log"))
	must(t, err)
	cmd.Stderr = log
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
		log.Close()
	})
	known := filepath.Join(dir, "known")
	must(t, os.WriteFile(known, []byte(knownhosts.Line([]string{address}, host)+"\n"), 0o644))
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) { // another process: there is no signal
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
			break
		}
		if time.Now().After(deadline) {
			text, _ := os.ReadFile(log.Name())
			t.Fatal(fmt.Errorf("sshd: %w: %s", err, text))
		}
	}
	return target.SFTPConfig{Host: address, User: me.Username, KnownHosts: known, Key: filepath.Join(dir, "client")}
}
