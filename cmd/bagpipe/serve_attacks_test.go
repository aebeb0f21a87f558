package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// Connections that send their headers byte by byte, more than one address may have, keep
// nobody else from being answered, and are ended.
func TestServeSlowHeaders(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.serve("--no-run")
	s.signIn()
	far := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	var slow []net.Conn
	for range 1100 {
		c, err := far.Dial("tcp", strings.TrimPrefix(s.base, "http://"))
		if err != nil {
			t.Skipf("this machine has no second address: %v", err)
		}
		defer c.Close()
		_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ") // of those beyond the limit it fails
		slow = append(slow, c)
	}
	if a := s.ask("GET", "/", ""); a.code != 200 {
		t.Errorf("beside %d slow ones: %d", len(slow), a.code)
	}
	for i, c := range slow {
		b.must(c.SetReadDeadline(time.Now().Add(time.Minute)))
		if _, err := io.Copy(io.Discard, c); os.IsTimeout(err) {
			t.Fatalf("connection %d is open yet", i)
		}
	}
	if a := s.ask("GET", "/items", ""); a.code != 200 {
		t.Errorf("after them: %d", a.code)
	}
}

// Ten thousand tries to sign in cost five comparisons a minute, and keep nobody out who is in.
func TestServeManySignIns(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	add := exec.Command("bagpipe", "-C", b.dir, "user", "add", "zoe", "--role", "operator")
	add.Env, add.Stdin = b.env, strings.NewReader("correct horse battery\n")
	if out, err := add.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s := b.serve("--no-run")
	s.signIn()
	var mu sync.Mutex // guards codes
	codes := map[int]int{}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 32}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	var callers sync.WaitGroup
	for range 32 {
		callers.Go(func() {
			for range 10000 / 32 {
				resp, err := client.PostForm(s.base+"/signin", url.Values{"name": {"zoe"}, "password": {"wrong horse battery"}})
				code := 0
				if err == nil {
					code = resp.StatusCode
					_, _ = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
				}
				mu.Lock()
				codes[code]++
				mu.Unlock()
			}
		})
	}
	if a := s.ask("GET", "/", ""); a.code != 200 {
		t.Errorf("meanwhile: %d", a.code)
	}
	callers.Wait()
	if codes[401] < 5 || codes[401] > 100 || codes[401]+codes[429] != 9984 { // a slow machine takes some minutes
		t.Errorf("answers: %v", codes)
	}
	if a := s.ask("GET", "/", ""); a.code != 200 {
		t.Errorf("afterwards: %d", a.code)
	}
}

// Where other machines do not reach: a socket in the file system, for its group alone, taken
// again after a kill.
func TestServeOnASocket(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	at := filepath.Join(b.top, "s")
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", at)
	}}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	ask := func(host string) int {
		r, err := http.NewRequest("GET", "http://"+host+"/", nil)
		b.must(err)
		resp, err := client.Do(r)
		if err != nil {
			return 0
		}
		b.must(resp.Body.Close())
		return resp.StatusCode
	}
	first := b.start("serve", "--no-run", "--listen", "unix:"+at)
	b.await("an answer", func() bool { return ask("localhost") == 303 })
	if code := ask("evil.example"); code != 421 {
		t.Errorf("a foreign name: %d", code)
	}
	if info, err := os.Stat(at); err != nil || info.Mode().Perm() != 0o660 {
		t.Errorf("%v, %v", info, err)
	}
	b.start("serve", "--no-run", "--listen", "unix:"+at).code(1)
	first.kill()
	client.CloseIdleConnections()
	b.start("serve", "--no-run", "--listen", "unix:"+at)
	b.await("an answer after a kill", func() bool { return ask("localhost") == 303 })
}

// Where other machines reach it, it lets nobody in by a link, tells no figures to strangers, and answers to its name
// alone.
func TestServeBeyondThisMachine(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	add := exec.Command("bagpipe", "-C", b.dir, "user", "add", "zoe", "--role", "operator")
	add.Env, add.Stdin = b.env, strings.NewReader("correct horse battery\n")
	if out, err := add.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := os.Create(filepath.Join(b.top, "out"))
	b.must(err)
	s := &site{b: b, out: out.Name(), cmd: exec.Command("bagpipe", "-C", b.dir, "serve", "--no-run", "--listen", "0.0.0.0:0", "--host", "archive.example.org", "--proxy-header", "X-Remote-User", "--proxy-from", "127.0.0.1")}
	s.cmd.Env, s.cmd.Stdout, s.cmd.Stderr = b.env, out, out
	b.must(s.cmd.Start())
	t.Cleanup(func() { _ = s.cmd.Process.Kill(); _, _ = s.cmd.Process.Wait() })
	b.await("the address", func() bool { return strings.Contains(s.said(), "Pages: http://archive.example.org:") })
	_, port, _ := strings.Cut(strings.TrimSpace(strings.TrimPrefix(s.said(), "Pages: http://")), ":")
	s.base = "http://127.0.0.1:" + strings.TrimSuffix(port, "/")
	if strings.Contains(s.said(), "once") {
		t.Errorf("it prints a link: %s", s.said())
	}
	for _, c := range []struct {
		path, host, user string
		want             int
	}{
		{"/", "localhost", "zoe", http.StatusMisdirectedRequest},
		{"/", "archive.example.org", "", http.StatusSeeOther},
		{"/", "archive.example.org", "zoe", http.StatusOK},
		{"/metrics", "archive.example.org", "", http.StatusUnauthorized},
		{"/metrics", "archive.example.org", "zoe", http.StatusOK},
		{"/healthz", "archive.example.org", "", http.StatusOK},
		{"/api/v1/status", "archive.example.org", "", http.StatusUnauthorized},
	} {
		s.jar = nil
		if a := s.ask("GET", c.path, "", "Host", c.host, "X-Remote-User", c.user); a.code != c.want {
			t.Errorf("%s of %s by %q: %d, not %d", c.path, c.host, c.user, a.code, c.want)
		}
	}
}

// With a certificate it speaks TLS 1.2 or newer and nothing else.
func TestServeTLS(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	b.must(err)
	cert := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, &key.PublicKey, key)
	b.must(err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	b.must(err)
	file := func(name, kind string, data []byte) string {
		path := filepath.Join(b.top, name)
		b.must(os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}), 0o600))
		return path
	}
	s := b.serve("--no-run", "--tls-cert", file("cert.pem", "CERTIFICATE", der), "--tls-key", file("key.pem", "PRIVATE KEY", private))
	if !strings.HasPrefix(s.link, "https://") {
		t.Fatalf("the link: %s", s.link)
	}
	pool := x509.NewCertPool()
	parsed, err := x509.ParseCertificate(der)
	b.must(err)
	pool.AddCert(parsed)
	signin := strings.Replace(s.base, "http:", "https:", 1) + "/signin"
	client := func(most uint16) *http.Client {
		return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MaxVersion: most}}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	resp, err := client(0).Get(signin)
	b.must(err)
	b.must(resp.Body.Close())
	if resp.StatusCode != 200 || resp.Header.Get("Strict-Transport-Security") == "" {
		t.Errorf("%s %v", resp.Status, resp.Header)
	}
	link, err := url.Parse(s.link)
	b.must(err)
	resp, err = client(0).PostForm(signin, url.Values{"once": {link.Query().Get("once")}})
	b.must(err)
	b.must(resp.Body.Close())
	if c := resp.Header.Get("Set-Cookie"); resp.StatusCode != 303 || !strings.Contains(c, "; Secure") {
		t.Errorf("the cookie goes over plain HTTP, too: %s %s", resp.Status, c)
	}
	if _, err := client(tls.VersionTLS11).Get(signin); err == nil {
		t.Error("it speaks TLS 1.1")
	}
	if a := s.ask("GET", "/", ""); a.code != 400 {
		t.Errorf("without TLS: %s", fmt.Sprint(a))
	}
}
