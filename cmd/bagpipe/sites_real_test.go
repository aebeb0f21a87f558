package main

import (
	"fmt"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// sshd starts Debian's sshd on loopback, with keys of its own, and gives the words by which
// ssh reaches it as host "hub".
func (b *bench) sshd() (ssh string) {
	b.t.Helper()
	const server = "/usr/sbin/sshd"
	if _, err := os.Stat(server); err != nil {
		b.t.Skip("no sshd; testdata/tools.sh installs it")
	}
	me, err := user.Current()
	b.must(err)
	if me.Uid == "0" { // where it drops its privileges
		b.must(os.MkdirAll("/run/sshd", 0o755))
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	b.must(err)
	port := l.Addr().(*net.TCPAddr).Port
	b.must(l.Close())
	dir := filepath.Join(b.top, "ssh")
	b.must(os.Mkdir(dir, 0o700))
	for _, key := range []string{"host", "me"} {
		out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, key)).CombinedOutput()
		if err != nil {
			b.t.Fatalf("ssh-keygen: %v: %s", err, out)
		}
	}
	b.write("ssh/sshd_config", fmt.Sprintf("Port %d\nListenAddress 127.0.0.1\nHostKey %s/host\nAuthorizedKeysFile %s/me.pub\nPidFile none\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nSetEnv PATH=%s\n",
		port, dir, dir, os.Getenv("PATH")))
	b.write("ssh/config", fmt.Sprintf("Host hub\n  HostName 127.0.0.1\n  Port %d\n  User %s\n  IdentityFile %s/me\n  IdentitiesOnly yes\n  StrictHostKeyChecking no\n  UserKnownHostsFile %s/known\n  BatchMode yes\n", port, me.Username, dir, dir))
	cmd := exec.Command(server, "-D", "-e", "-f", filepath.Join(dir, "sshd_config"))
	log, err := os.Create(filepath.Join(dir, "log"))
	b.must(err)
	cmd.Stderr = log
	b.must(cmd.Start())
	b.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = log.Close()
	})
	ssh = "ssh -F " + filepath.Join(dir, "config")
	b.await("sshd", func() bool {
		return exec.Command("ssh", "-F", filepath.Join(dir, "config"), "hub", "true").Run() == nil
	})
	return ssh
}

// site is another workspace beside the bench's.
func (b *bench) site(dir string, args ...string) string {
	b.t.Helper()
	cmd := exec.Command("bagpipe", append([]string{"-C", filepath.Join(b.top, dir)}, args...)...)
	cmd.Env = b.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		b.t.Fatalf("%s: bagpipe %v: %v\n%s", dir, args, err, out)
	}
	return string(out)
}

// Two sites sync through a repository behind sshd, and move bytes by rsync over ssh.
func TestSitesOverSSH(t *testing.T) {
	b := newBench(t)
	ssh := b.sshd()
	b.env = append(b.env, "GIT_SSH_COMMAND="+ssh, "RSYNC_RSH="+ssh)
	hub := filepath.Join(b.top, "hub.git")
	b.git("init", "-q", "--bare", "-b", "main", hub)
	b.ok("site", "lab")
	b.ok("remote", "add", "origin", "hub:"+hub)
	b.write("letter.txt", "Dear Sir\n")
	b.ok("add", filepath.Join(b.top, "letter.txt"))
	b.ok("sync")
	b.ok("clone", "hub:"+hub, filepath.Join(b.top, "field"), "--site", "field")
	b.site("field", "hold", "letter.txt", "-m", "by the field")
	b.site("field", "sync")
	b.ok("sync")
	if out := b.ok("show", "letter.txt"); !strings.Contains(out, "by the field") {
		t.Errorf("the hold did not come:\n%s", out)
	}
	if _, err := exec.LookPath("rsync"); err != nil {
		t.Skip("no rsync; testdata/tools.sh installs it")
	}
	dir := gjson.Get(b.ok("items", "--json"), "0.item").String()
	b.site("field", "payload", "get", "--from", "hub:"+b.dir)
	if out := b.site("field", "payload", "status"); !strings.Contains(out, "the bytes of all items are here") {
		t.Errorf("bytes of %s are missing:\n%s", dir, out)
	}
	b.site("field", "payload", "put", "letter.txt", "--to", "hub:"+filepath.Join(b.top, "away"))
	found, err := filepath.Glob(filepath.Join(b.top, "away/items/*/*/*/*/*/source/letter.txt"))
	if err != nil || len(found) != 1 {
		t.Errorf("put to %v, %v", found, err)
	}
}

// The same through Git's own HTTP server, as a forge has it; and what the forge's button
// merges, by git merge-tree in a bare repository without a driver, loses nothing.
func TestSitesOverHTTP(t *testing.T) {
	b := newBench(t)
	where, err := exec.Command("git", "--exec-path").Output()
	b.must(err)
	backend := filepath.Join(strings.TrimSpace(string(where)), "git-http-backend")
	if _, err := os.Stat(backend); err != nil {
		t.Skip("no git http-backend")
	}
	hub := filepath.Join(b.top, "hub.git")
	b.git("init", "-q", "--bare", "-b", "main", hub)
	b.git("-C", hub, "config", "http.receivepack", "true")
	server := httptest.NewServer(&cgi.Handler{Path: backend, Env: []string{"GIT_PROJECT_ROOT=" + b.top, "GIT_HTTP_EXPORT_ALL=1", "PATH=" + os.Getenv("PATH")}})
	defer server.Close()
	url := server.URL + "/hub.git"
	b.ok("site", "lab")
	b.ok("remote", "add", "origin", url)
	b.write("letter.txt", "Dear Sir\n")
	b.ok("add", filepath.Join(b.top, "letter.txt"))
	b.ok("sync")
	b.ok("clone", url, filepath.Join(b.top, "field"), "--site", "field")
	b.site("field", "note", "letter.txt", "-m", "by the field")
	b.site("field", "sync")

	// Somebody's branch is merged by the button while the sites go on.
	b.git("clone", "-q", url, filepath.Join(b.top, "clone"))
	clone := filepath.Join(b.top, "clone")
	b.write("clone/workflows/short.yaml", "schema: 1\nname: short\nsteps:\n  - name: register\n")
	b.git("-C", clone, "checkout", "-q", "-b", "short")
	b.git("-C", clone, "add", "workflows")
	b.git("-C", clone, "commit", "-q", "-m", "a short workflow")
	b.git("-C", clone, "push", "-q", "origin", "short")
	b.ok("sync")
	tree := strings.TrimSpace(b.git("-C", hub, "merge-tree", "--write-tree", "main", "short"))
	merge := strings.TrimSpace(b.git("-C", hub, "commit-tree", tree, "-p", "main", "-p", "short", "-m", "Merge branch 'short'"))
	b.git("-C", hub, "update-ref", "refs/heads/main", merge)
	b.ok("sync")
	b.site("field", "sync")
	b.ok("sync")
	if a, c := b.git("rev-parse", "main"), b.git("-C", filepath.Join(b.top, "field"), "rev-parse", "main"); a != c {
		t.Errorf("the sites do not come to rest: %s, %s", a, c)
	}
	if out := b.ok("log", "letter.txt"); !strings.Contains(out, "by the field") {
		t.Errorf("the note did not come:\n%s", out)
	}
	b.ok("workflow", "show", "short")
	if out := b.ok("audit"); !strings.Contains(out, ": 0 findings") {
		t.Error(out)
	}
}

// A remote that wants a password is told of as one that fails: nobody is asked, and nothing waits.
func TestASyncAsksNobody(t *testing.T) {
	b := newBench(t)
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		w.Header().Set("WWW-Authenticate", `Basic realm="hub"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer server.Close()
	b.ok("site", "lab")
	b.ok("remote", "add", "origin", server.URL+"/hub.git")
	if out := b.start("sync").code(1); !strings.Contains(out, "sync with origin: git fetch: ") || asked == 0 {
		t.Errorf("asked %d times:\n%s", asked, out)
	}
}
