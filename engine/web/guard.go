package web

import (
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"bagpipe/engine/web/internal/desk"
)

// contentPolicy lets a page load from this server alone, and nothing that is written into
// the page itself run.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// guarded sets the headers of every answer, and refuses requests for names that are not this
// server's: a foreign name that leads to this address (DNS rebinding) is a foreign page.
func (s *Site) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", contentPolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		if s.o.TLS {
			h.Set("Strict-Transport-Security", "max-age=31536000")
		}
		if !s.answersTo(r.Host) {
			http.Error(w, "this server has another name; it is named with --host", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// answersTo reports whether a Host is a name of this server.
func (s *Site) answersTo(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.ToLower(strings.Trim(name, "[]"))
	if slices.Contains(s.o.Hosts, name) {
		return true
	}
	if s.o.Local {
		return name == "localhost" || name == "127.0.0.1" || name == "::1"
	}
	return false
}

// The times that a request may take. Streams and the bytes of files set their own.
const (
	headerTime = 10 * time.Second
	bodyTime   = 2 * time.Minute
	answerTime = 2 * time.Minute
	idleTime   = 2 * time.Minute
	mostHeader = 1 << 16
	mostBody   = 1 << 20
)

// bounded limits how long a request is read and answered, and how large it is. A path for
// which large reports true has no such limits.
func bounded(next http.Handler, large func(*http.Request) bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !large(r) {
			c := http.NewResponseController(w)
			now := time.Now()
			if r.ContentLength != 0 { // else a stream would end with it
				_ = c.SetReadDeadline(now.Add(bodyTime)) // a writer of tests has none
			}
			_ = c.SetWriteDeadline(now.Add(answerTime))
			r.Body = http.MaxBytesReader(w, r.Body, mostBody)
		}
		next.ServeHTTP(w, r)
	})
}

// known lets a request pass that comes from somebody who was let in; refuse answers others.
func (s *Site) known(next http.Handler, refuse func(http.ResponseWriter, *http.Request, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, err := s.door.Who(r)
		if err != nil {
			refuse(w, r, err)
			return
		}
		next.ServeHTTP(w, r.WithContext(desk.With(r.Context(), who)))
	})
}
