package targettest

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
)

// Tamper is a proxy before an S3 server. Each request is given to Do, if there is one: it may change
// it, or answer in the server's place, which it reports.
type Tamper struct {
	Endpoint, CA string

	mu sync.Mutex // guards do
	do func(w http.ResponseWriter, r *http.Request) (answered bool)
}

// NewTamper forwards to an endpoint; it ends with the test. What is signed stays as it was. ca, unless
// "", is a file for the certificate of its own that it serves TLS with.
func NewTamper(t *testing.T, endpoint, ca string) *Tamper {
	t.Helper()
	to, err := url.Parse(endpoint)
	must(t, err)
	p := &Tamper{}
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host = to.Scheme, to.Host
		r.Out.Host = r.In.Host
	}}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		do := p.do
		p.mu.Unlock()
		if do == nil || !do(w, r) {
			forward.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.Close)
	if p.CA = ca; ca == "" {
		s.Start()
	} else {
		s.StartTLS()
		must(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o644))
	}
	p.Endpoint = s.URL
	return p
}

// Do sets what is done from now on; nil: nothing.
func (p *Tamper) Do(do func(w http.ResponseWriter, r *http.Request) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.do = do
}

// Refuse answers as S3 does.
func Refuse(w http.ResponseWriter, status int, code string) bool {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(strings.ReplaceAll(`<?xml version="1.0"?><Error><Code>CODE</Code><Message>it is CODE</Message></Error>`, "CODE", code))) // to a test's client
	return true
}
