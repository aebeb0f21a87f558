package main

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// site is a bagpipe serve that runs, as a browser and as a program see it.
type site struct {
	b     *bench
	cmd   *exec.Cmd
	base  string // http://127.0.0.1:PORT
	link  string // lets one browser in
	token string // of a program; "": none is given
	out   string // the file of what it prints
	jar   http.CookieJar
}

// serve starts bagpipe serve on a free port. It does not outlive the test.
func (b *bench) serve(args ...string) *site {
	b.t.Helper()
	return b.serveAs(nil, args...)
}

// serveAs is serve by another user; nil: by who runs the tests.
func (b *bench) serveAs(user *syscall.Credential, args ...string) *site {
	b.t.Helper()
	out, err := os.Create(filepath.Join(b.t.TempDir(), "serve.out"))
	b.must(err)
	s := &site{b: b, cmd: exec.Command("bagpipe", append([]string{"-C", b.dir, "serve", "--listen", "127.0.0.1:0"}, args...)...)}
	s.cmd.Env, s.cmd.Stdout, s.cmd.Stderr, s.out = b.env, out, out, out.Name()
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: user}
	b.must(s.cmd.Start())
	b.t.Cleanup(func() { _ = s.cmd.Process.Kill(); _, _ = s.cmd.Process.Wait() })
	b.await("the link", func() bool {
		text, err := os.ReadFile(out.Name())
		b.must(err)
		for line := range strings.Lines(string(text)) {
			if link, ok := strings.CutPrefix(line, "Open once: "); ok {
				s.link = strings.TrimSpace(link)
			}
		}
		return s.link != ""
	})
	u, err := url.Parse(s.link)
	b.must(err)
	s.base = "http://" + u.Host
	s.jar, err = cookiejar.New(nil)
	b.must(err)
	return s
}

// said is what the server has printed.
func (s *site) said() string {
	s.b.t.Helper()
	text, err := os.ReadFile(s.out)
	s.b.must(err)
	return string(text)
}

// answer is what came back.
type answer struct {
	code   int
	header http.Header
	body   string
}

// ask sends a request; headers are names and values in turn.
func (s *site) ask(method, path, body string, headers ...string) answer {
	s.b.t.Helper()
	a, err := s.request(method, path, body, headers...)
	s.b.must(err)
	return a
}

func (s *site) request(method, path, body string, headers ...string) (answer, error) {
	r, err := http.NewRequest(method, s.base+path, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	if s.token != "" {
		r.Header.Set("Authorization", "Bearer "+s.token)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
	}
	client := &http.Client{Timeout: 30 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if s.token == "" {
		client.Jar = s.jar
	}
	resp, err := client.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(data)}, err
}

// listens are the sockets of the server at which anybody can reach it: TCP and Unix ones that listen, and
// all of UDP, with their addresses as proc(5) tells them.
func (s *site) listens() (open []string, err error) {
	proc := filepath.Join("/proc", strconv.Itoa(s.cmd.Process.Pid))
	own := map[string]bool{}
	files, err := os.ReadDir(filepath.Join(proc, "fd"))
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		to, _ := os.Readlink(filepath.Join(proc, "fd", f.Name())) // it may be closed by now
		if inode, ok := strings.CutPrefix(to, "socket:["); ok {
			own[strings.TrimSuffix(inode, "]")] = true
		}
	}
	for _, kind := range []struct {
		name               string
		address, is, inode int // columns
		listening          string
	}{{"tcp", 1, 3, 9, "0A"}, {"tcp6", 1, 3, 9, "0A"}, {"udp", 1, 3, 9, ""}, {"udp6", 1, 3, 9, ""}, {"unix", 5, 3, 6, "00010000"}} {
		text, err := os.ReadFile(filepath.Join(proc, "net", kind.name))
		if err != nil {
			continue // this machine has no such sockets
		}
		for line := range strings.Lines(string(text)) {
			if f := strings.Fields(line); len(f) > kind.inode && own[f[kind.inode]] && (kind.listening == "" || f[kind.is] == kind.listening) {
				open = append(open, kind.name+" "+f[kind.address])
			}
		}
	}
	return open, nil
}

const formType = "application/x-www-form-urlencoded"

// signIn enters by the link.
func (s *site) signIn() answer {
	s.b.t.Helper()
	u, err := url.Parse(s.link)
	s.b.must(err)
	return s.ask("POST", "/signin", url.Values{"once": {u.Query().Get("once")}}.Encode(), "Content-Type", formType)
}

// program lets the test call as a program of a role.
func (s *site) program(role string) {
	s.b.t.Helper()
	for line := range strings.Lines(s.b.ok("token", "add", "robot", "--role", role)) {
		if strings.HasPrefix(line, "bagpipe_") {
			s.token = strings.TrimSpace(line)
		}
	}
}

func TestServe(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.serve()
	if a := s.ask("GET", "/", ""); a.code != 303 || a.header.Get("Location") != "/signin" {
		t.Errorf("a stranger: %+v", a)
	}
	if a := s.signIn(); a.code != 303 {
		t.Fatalf("signing in: %+v", a)
	}
	if a := s.signIn(); a.code != 401 {
		t.Errorf("the link was taken twice: %+v", a)
	}
	b.drop("zip")
	b.await("the drop on the page", func() bool { return strings.Contains(s.ask("GET", "/", "").body, "<b>1</b> item<") })
	page := s.ask("GET", "/", "")
	if policy := page.header.Get("Content-Security-Policy"); policy != "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'" || !strings.Contains(page.body, "Ada Keeper") {
		t.Errorf("%s\n%s", policy, page.body)
	}
	for _, bad := range []string{"<script>", "style=", "onclick=", "http:", "https:"} {
		if strings.Contains(page.body, bad) {
			t.Errorf("the page holds %s", bad)
		}
	}
	for _, c := range []struct {
		method, path string
		headers      []string
		want         int
	}{
		{"GET", "/", []string{"Host", "evil.example"}, 421},
		{"POST", "/signin", []string{"Origin", "http://evil.example", "Sec-Fetch-Site", "cross-site"}, 403},
		{"GET", "/nowhere", nil, 404},
		{"GET", "/metrics", nil, 200},
		{"GET", "/healthz", nil, 200},
		{"GET", "/static/x/app.js", nil, 200},
		{"GET", "/static/x/doc.go", nil, 404},
	} {
		if a := s.ask(c.method, c.path, "", c.headers...); a.code != c.want {
			t.Errorf("%s %s %v: %d, not %d: %s", c.method, c.path, c.headers, a.code, c.want, a.body)
		}
	}
	if open, err := s.listens(); err != nil || len(open) != 1 || !strings.HasPrefix(open[0], "tcp 0100007F:") { // 127.0.0.1
		t.Errorf("it listens at %q: %v", open, err)
	}
	git := filepath.Join(b.dir, ".git")
	b.must(os.Rename(git, git+"-away"))
	for _, path := range []string{"/healthz", "/api/v1/healthz"} {
		if a := s.ask("GET", path, ""); a.code != 503 {
			t.Errorf("%s without a history: %+v", path, a)
		}
	}
	b.must(os.Rename(git+"-away", git))
	b.must(s.cmd.Process.Signal(syscall.SIGTERM))
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
}

// Without --listen it is at 127.0.0.1:8470 and nowhere else, or says that another process is there.
func TestServeAtItsOwnAddress(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	out, err := os.Create(filepath.Join(b.top, "out"))
	b.must(err)
	s := &site{b: b, cmd: exec.Command("bagpipe", "-C", b.dir, "serve", "--no-run"), out: out.Name()}
	s.cmd.Env, s.cmd.Stdout, s.cmd.Stderr = b.env, out, out
	b.must(s.cmd.Start())
	t.Cleanup(func() { _ = s.cmd.Process.Kill(); _, _ = s.cmd.Process.Wait() })
	b.await("where it is", func() bool { return strings.Contains(s.said(), "127.0.0.1:8470") })
	if !strings.Contains(s.said(), "Open once: ") {
		t.Skipf("the address is taken: %s", s.said())
	}
	if open, err := s.listens(); err != nil || len(open) != 1 || open[0] != "tcp 0100007F:2116" {
		t.Errorf("it listens at %q: %v", open, err)
	}
}

// The demo ends with the line that opens the pages on its workspace.
func TestTheDemoEndsWithThePages(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(filepath.Join(moduleRoot(t), "testdata/demo/run.sh"))
	if err != nil || !strings.HasSuffix(string(data), "\n\n  bin/bagpipe -C $demo serve\nEND\n") {
		t.Errorf("%v %.300s", err, data[max(0, len(data)-300):])
	}
}

// People sign in with a password; five tries a minute are looked at.
func TestServeUsers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	add := exec.Command("bagpipe", "-C", b.dir, "user", "add", "zoe", "--role", "operator", "--full-name", "Zoé Reader", "--email", "zoe@example.org")
	add.Env, add.Stdin = b.env, strings.NewReader("correct horse battery\n")
	if out, err := add.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s := b.serve("--no-run", "--base", "/archive")
	try := func(password string) answer {
		return s.ask("POST", "/archive/signin", url.Values{"name": {"zoe"}, "password": {password}, "next": {"//evil.example/"}}.Encode(), "Content-Type", formType)
	}
	if a := try("wrong horse battery"); a.code != 401 {
		t.Errorf("a wrong password: %d", a.code)
	}
	if a := try("correct horse battery"); a.code != 303 || a.header.Get("Location") != "/archive/" {
		t.Errorf("the right one: %+v", a)
	}
	if a := s.ask("GET", "/archive/", ""); a.code != 200 || !strings.Contains(a.body, "Zoé Reader") {
		t.Errorf("signed in: %+v", a)
	}
	for range 3 {
		try("wrong horse battery")
	}
	if a := try("correct horse battery"); a.code != 429 {
		t.Errorf("the sixth try: %d", a.code)
	}
	b.ok("user", "remove", "zoe")
	if a := s.ask("GET", "/archive/", ""); a.code != 303 {
		t.Errorf("a removed user is let in: %d", a.code)
	}
	b.start("serve", "--listen", "0.0.0.0:0").code(1)
	if said := b.start("serve", "--listen", "0.0.0.0:0", "--proxy-header", "X-Remote-User", "--proxy-from", "127.0.0.1").code(1); !strings.Contains(said, "there are no users") {
		t.Errorf("beyond this machine without users: %s", said)
	}
	b.start("serve", "--listen", "nonsense").code(2)
	b.start("serve", "--tls-cert", "x").code(2)
	for _, name := range []string{"https://archive.example.org", "archive.example.org:8470", "archive.example.org/", "two names"} { // no request would be for it
		if said := b.start("serve", "--no-run", "--listen", "127.0.0.1:0", "--host", name).code(2); !strings.Contains(said, "without port and path") {
			t.Errorf("the name %q: %s", name, said)
		}
	}
}
