package notices_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"encoding/xml"
	"fmt"
	"io"
	"math/big"
	mathrand "math/rand"
	"net"
	"net/http"
	"net/http/httptest"
	"net/mail"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"bagpipe/engine"
	"bagpipe/engine/claim"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/intake"
	"bagpipe/engine/notice"
	"bagpipe/engine/notices"
	"bagpipe/steps"
	"bagpipe/testdata/sample"
)

// TestSignatureIsThePublishedOne takes the vectors of Standard Webhooks: the signature of each
// body is the valid one, and none of those that are not.
func TestSignatureIsThePublishedOne(t *testing.T) {
	data, err := os.ReadFile("../../../shared/fixtures/webhooks/vectors.json")
	if err != nil {
		t.Skip(err)
	}
	var published struct {
		Vectors []struct {
			Secret    string `json:"secret"`
			ID        string `json:"webhook-id"`
			Timestamp string `json:"webhook-timestamp"`
			Body      string `json:"body"`
			Signature string `json:"webhook-signature"`
			Valid     bool   `json:"valid"`
		} `json:"vectors"`
		Refused []any `json:"secrets_refused"`
	}
	if err := json.Unmarshal(data, &published); err != nil {
		t.Fatal(err)
	}
	valid := 0
	for _, v := range published.Vectors {
		key, err := notice.SigningKey(v.Secret)
		if err != nil {
			t.Fatal(err)
		}
		at, err := strconv.ParseInt(v.Timestamp, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		got := notices.Signature(key, v.ID, time.Unix(at, 0), []byte(v.Body))
		if is := slices.Contains(strings.Fields(v.Signature), got); is != v.Valid {
			t.Errorf("%s of %s: it is that of the vector: %v", got, v.Body, is)
		}
		if v.Valid {
			valid++
		}
	}
	if valid == 0 || len(published.Refused) == 0 {
		t.Errorf("%d valid vectors, %d secrets to refuse", valid, len(published.Refused))
	}
	for _, r := range published.Refused {
		secret, is := r.(string)
		if of, isMap := r.(map[string]any); isMap {
			secret, is = of["secret"].(string)
		}
		if key, err := notice.SigningKey(secret); !is || err == nil {
			t.Errorf("%v was taken, as %x", r, key)
		}
	}
}

// bench is a workspace with one item whose step fails, and a clock that the test moves.
type bench struct {
	*testing.T
	e     *engine.Engine
	clock *sample.Clock
}

// hooked is a workspace that tells a webhook, as more beside its address says.
func hooked(t *testing.T, more string) (*bench, *hook) {
	t.Helper()
	h := &hook{}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return newBench(t, "{url: '"+server.URL+"'"+more+"}"), h
}

func newBench(t *testing.T, notify string) *bench {
	t.Helper()
	b := &bench{T: t, clock: sample.NewClock(time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC))}
	root := filepath.Join(t.TempDir(), "ws")
	o := engine.Options{Now: b.clock.Now, Random: mathrand.New(mathrand.NewSource(1)), Robots: steps.Builtins(),
		Person: gitstore.Signature{Name: "Ada", Email: "ada@example.org"}, Host: claim.Host{Name: "host", BootID: "b", PID: os.Getpid()}}
	b.must(engine.Init(t.Context(), root, o))
	b.put(root, "workflows/w.yaml", "schema: 1\nname: w\nsteps:\n  - name: register\n  - name: scan\n    command: [sh, -c, 'test -e \"$OK\" || { echo why >&2; exit 65; }']\n")
	b.put(root, "bagpipe.yaml", "schema: 1\ndefaults: {workflow: w}\nnotify:\n  ops: "+notify+"\n")
	e, err := engine.Open(t.Context(), root, o)
	b.must(err)
	b.e = e
	t.Cleanup(func() { b.must(e.Close()) })
	return b
}

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench) put(root, name, text string) {
	b.Helper()
	b.must(os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o777))
	b.must(os.WriteFile(filepath.Join(root, name), []byte(text), 0o666))
}

// fail takes items in, and has them fail.
func (b *bench) fail(n int) {
	b.Helper()
	dir := b.TempDir()
	for i := range n {
		b.put(dir, fmt.Sprintf("%d.txt", i), fmt.Sprint(b.clock.Now(), i))
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*"))
	b.must(err)
	b.must(b.e.Intake.AddAll(b.Context(), paths, intake.AddOptions{}, func(_ intake.Admitted, err error) { b.must(err) }))
	_, err = b.e.Run(b.Context(), engine.RunOptions{Parallel: 2})
	if err != nil && !strings.Contains(err.Error(), "notify") {
		b.Fatal(err)
	}
}

// hook is a webhook that keeps what it got.
type hook struct {
	mu     sync.Mutex
	answer func(w http.ResponseWriter)
	got    []notices.Digest
	heads  []http.Header
	bodies [][]byte
}

func (h *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	data, err := io.ReadAll(r.Body)
	var d notices.Digest
	if err != nil || json.Unmarshal(data, &d) != nil {
		http.Error(w, "no digest", http.StatusBadRequest)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.got, h.heads, h.bodies = append(h.got, d), append(h.heads, r.Header), append(h.bodies, data)
	if h.answer != nil {
		h.answer(w)
	}
}

func TestADigestIsToldOnceAndWhatIsMendedToo(t *testing.T) {
	t.Setenv("HOOK", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	b, h := hooked(t, ", secret: {env: HOOK}")
	b.fail(3)
	if len(h.got) != 1 || h.got[0].Counts["failures"] != 3 || len(h.got[0].News) != 3 || h.got[0].Text != "3 failed" {
		t.Fatalf("%+v", h.got)
	}
	key, _ := base64.StdEncoding.DecodeString("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if got := h.heads[0]; got.Get("webhook-id") != h.got[0].ID || got.Get("webhook-signature") != notices.Signature(key, h.got[0].ID, b.clock.Now(), h.bodies[0]) {
		t.Errorf("%v", got)
	}
	b.must(b.e.Notices.Tell(t.Context(), true))
	if len(h.got) != 1 {
		t.Errorf("told again: %+v", h.got[1])
	}
	ok := filepath.Join(t.TempDir(), "ok")
	b.put(filepath.Dir(ok), "ok", "")
	t.Setenv("OK", ok)
	b.clock.Move(time.Hour)
	_, err := b.e.Run(t.Context(), engine.RunOptions{Parallel: 2, RetryFailed: true})
	b.must(err)
	if len(h.got) != 2 || h.got[1].Counts["mended"] != 3 || len(h.got[1].News) != 0 || len(h.got[1].Mended) != 3 {
		t.Errorf("%+v", h.got[1:])
	}
}

// A digest that cannot be handed over keeps its identifier, for a day.
func TestTriesGoOnForADayUnderOneIdentifier(t *testing.T) {
	h := &hook{answer: func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) }}
	server := httptest.NewServer(h)
	defer server.Close()
	b := newBench(t, "{url: '"+server.URL+"'}")
	b.fail(1)
	begun, last := b.clock.Now(), 0
	for hours := 0; hours < 30; hours++ {
		b.clock.Move(time.Hour)
		err := b.e.Notices.Tell(t.Context(), false)
		if len(h.got) == last {
			break
		}
		if last = len(h.got); err == nil || b.clock.Now().Sub(begun) < 24*time.Hour != strings.Contains(err.Error(), "tried again") {
			t.Fatalf("after %s: %v", b.clock.Now().Sub(begun), err)
		}
	}
	if len(h.got) < 20 {
		t.Errorf("%d tries", len(h.got))
	}
	for _, d := range h.got {
		if d.ID != h.got[0].ID {
			t.Errorf("%s became %s", h.got[0].ID, d.ID)
		}
	}
}

func TestHostileWebhooks(t *testing.T) {
	other := &hook{}
	elsewhere := httptest.NewServer(other)
	defer elsewhere.Close()
	for name, answer := range map[string]func(w http.ResponseWriter){
		"redirects": func(w http.ResponseWriter) {
			w.Header().Set("Location", elsewhere.URL)
			w.WriteHeader(http.StatusTemporaryRedirect)
		},
		"answers without an end": func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusBadGateway)
			for {
				if _, err := w.Write(make([]byte, 1<<20)); err != nil {
					return
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(&hook{answer: answer})
			defer server.Close()
			b := newBench(t, "{url: '"+server.URL+"'}")
			b.fail(1)
			b.clock.Move(time.Hour)
			if err := b.e.Notices.Tell(t.Context(), true); err == nil || !strings.Contains(err.Error(), "tried again") {
				t.Error(err)
			}
		})
	}
	if len(other.got) > 0 {
		t.Error("a redirection was followed")
	}
}

func TestNothingIsToldInQuietHours(t *testing.T) {
	b, h := hooked(t, ", quiet: ['11:00', '13:00']")
	b.fail(1)
	if len(h.got) != 0 {
		t.Fatalf("told at %s", b.clock.Now())
	}
	b.clock.Move(time.Hour)
	b.must(b.e.Notices.Tell(t.Context(), false))
	if len(h.got) != 1 {
		t.Errorf("told %d times", len(h.got))
	}
}

func TestAtomFileAndCommand(t *testing.T) {
	b := newBench(t, "{atom: notices.atom}\n  sh: {command: [sh, -c, 'cat >digest.json; echo \"$BAGPIPE_NEWS\" >news']}")
	b.fail(2)
	data, err := os.ReadFile(filepath.Join(b.e.Root(), "notices.atom"))
	b.must(err)
	var feed struct {
		Entries []struct {
			Title string `xml:"title"`
		} `xml:"entry"`
	}
	if err := xml.Unmarshal(data, &feed); err != nil || len(feed.Entries) != 1 || feed.Entries[0].Title != "2 failed" {
		t.Errorf("%v: %s", err, data)
	}
	news, err := os.ReadFile(filepath.Join(b.e.Root(), "news"))
	if err != nil || string(news) != "2 failed\n" {
		t.Errorf("%q, %v", news, err)
	}
}

// server is a mail server that speaks just enough SMTP, with TLS, and refuses some.
type server struct {
	net.Listener
	tls    *tls.Config
	plain  bool
	mu     sync.Mutex
	letter string
	to     []string
	busy   bool // for those who are called later
}

func (s *server) serve() {
	for {
		conn, err := s.Accept()
		if err != nil {
			return
		}
		go s.talk(conn)
	}
}

func (s *server) talk(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	r := bufio.NewReader(conn)
	say := func(text string) { fmt.Fprintf(conn, "%s\r\n", text) }
	say("220 mail.test ESMTP")
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		switch verb := strings.ToUpper(strings.Fields(line + " x")[0]); verb {
		case "EHLO":
			if s.plain {
				say("250 mail.test")
			} else {
				say("250-mail.test\r\n250 STARTTLS")
			}
		case "STARTTLS":
			say("220 go on")
			conn = tls.Server(conn, s.tls)
			r = bufio.NewReader(conn)
		case "RCPT":
			if strings.Contains(line, "nobody") {
				say("550 no such person")
				continue
			}
			s.mu.Lock()
			if s.busy && strings.Contains(line, "later") {
				s.mu.Unlock()
				say("450 try again later")
				continue
			}
			s.to = append(s.to, strings.TrimSpace(line))
			s.mu.Unlock()
			say("250 ok")
		case "DATA":
			say("354 go on")
			var text strings.Builder
			for {
				line, err := r.ReadString('\n')
				if err != nil || line == ".\r\n" {
					break
				}
				text.WriteString(line)
			}
			s.mu.Lock()
			s.letter = text.String()
			s.mu.Unlock()
			say("250 taken")
		case "QUIT":
			say("221 bye")
			return
		default:
			say("250 ok")
		}
	}
}

// mailServer starts a server, and gives its address and the file that vouches for it.
func mailServer(t *testing.T, plain bool) (s *server, address, ca string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	cert := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	ca = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o666); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	s = &server{Listener: l, plain: plain, tls: &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}}
	go s.serve()
	return s, l.Addr().String(), ca
}

func TestMailGoesToThoseWhomTheServerTakesItFor(t *testing.T) {
	s, address, ca := mailServer(t, false)
	b := newBench(t, fmt.Sprintf("{mail: {server: '%s', from: 'Bagpipe <bp@example.org>', to: [ada@example.org, nobody@example.org]}, ca: '%s'}", address, ca))
	b.fail(2)
	m, err := mail.ReadMessage(strings.NewReader(s.letter))
	b.must(err)
	body, err := io.ReadAll(m.Body)
	b.must(err)
	if m.Header.Get("Subject") != "bagpipe: 2 failed" || !strings.Contains(string(body), "why") || !strings.HasPrefix(m.Header.Get("Message-Id"), "<msg_") {
		t.Errorf("%s", s.letter)
	}
	if got := strings.Join(s.to, " "); got != "RCPT TO:<ada@example.org>" {
		t.Errorf("to %s", got)
	}
	b.clock.Move(time.Hour)
	b.must(b.e.Notices.Tell(context.Background(), true)) // those who got it get it once
}

// Who was refused for now is tried again, alone; who was refused for good is not.
func TestMailIsTriedAgainForThoseRefusedForNow(t *testing.T) {
	s, address, ca := mailServer(t, false)
	s.busy = true
	b := newBench(t, fmt.Sprintf("{mail: {server: '%s', from: bp@example.org, to: [ada@example.org, nobody@example.org, later@example.org]}, ca: '%s'}", address, ca))
	b.fail(1)
	told := func() string {
		s.mu.Lock()
		defer s.mu.Unlock()
		return strings.Join(s.to, " ")
	}
	for range 2 { // it is refused again
		if got := told(); got != "RCPT TO:<ada@example.org>" {
			t.Fatalf("to %s", got)
		}
		b.clock.Move(2 * time.Hour)
		if err := b.e.Notices.Tell(t.Context(), false); err == nil || !strings.Contains(err.Error(), "tried again: the mail server refused everybody: later@example.org") {
			t.Fatal(err)
		}
	}
	s.mu.Lock()
	s.busy = false
	s.mu.Unlock()
	b.clock.Move(2 * time.Hour)
	b.must(b.e.Notices.Tell(t.Context(), false))
	b.clock.Move(2 * time.Hour)
	b.must(b.e.Notices.Tell(t.Context(), false))
	if got := told(); got != "RCPT TO:<ada@example.org> RCPT TO:<later@example.org>" {
		t.Errorf("to %s", got)
	}
}

// Very many failures are one digest, which says how many there are and names the first.
func TestManyFailuresAreOneDigest(t *testing.T) {
	many := 230
	if os.Getenv("BAGPIPE_SOAK") != "" {
		many = 10_000
	}
	b, h := hooked(t, ", quiet: ['11:00', '13:00']") // until all have failed
	b.fail(many)
	b.clock.Move(time.Hour)
	b.must(b.e.Notices.Tell(t.Context(), false))
	if len(h.got) != 1 || h.got[0].Counts["failures"] != many || len(h.got[0].News) != 200 || h.got[0].Text != fmt.Sprint(many, " failed") || len(h.bodies[0]) > 200_000 {
		t.Errorf("%d digests", len(h.got))
	}
}

func TestNoMailGoesWithoutTLS(t *testing.T) {
	s, address, ca := mailServer(t, true)
	b := newBench(t, fmt.Sprintf("{mail: {server: '%s', from: bp@example.org, to: [ada@example.org]}, ca: '%s'}", address, ca))
	b.fail(1)
	b.clock.Move(time.Hour)
	if err := b.e.Notices.Tell(t.Context(), true); err == nil || !strings.Contains(err.Error(), "offers no TLS") || s.letter != "" {
		t.Errorf("%v %q", err, s.letter)
	}
	_, trusted, _ := mailServer(t, false)
	b = newBench(t, fmt.Sprintf("{mail: {server: '%s', from: bp@example.org, to: [ada@example.org]}}", trusted))
	b.fail(1)
	b.clock.Move(time.Hour)
	if err := b.e.Notices.Tell(t.Context(), true); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a server that nobody vouches for: %v", err)
	}
}
