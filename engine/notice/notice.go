package notice

import (
	"encoding/base64"
	"fmt"
	"net/mail"
	"net/url"
	"slices"
	"strings"
	"time"

	"bagpipe/engine/timetable"
	"bagpipe/layout"
)

// The kinds of news that notify: can tell of.
const (
	Failures  = "failures"
	People    = "people"
	Stalls    = "stalls"
	Fixity    = "fixity"
	Schedules = "schedules"
	Workers   = "workers"
	Mended    = "mended"
	Disposal  = "disposal" // items whose time is over, and proposals that wait
	Searches  = "searches" // what a saved search finds that it did not find before
)

// kinds are all of them.
var kinds = []string{Failures, People, Stalls, Fixity, Schedules, Workers, Mended, Disposal, Searches}

// Wish says who is told of what, how often and in which way.
type Wish struct {
	Of      []string        `yaml:"of"` // kinds; none: all
	Every   layout.Duration `yaml:"every"`
	Quiet   []string        `yaml:"quiet"` // two times of the day
	Zone    string          `yaml:"zone"`
	Command []string        `yaml:"command"`
	URL     string          `yaml:"url"`
	Secret  layout.Secret   `yaml:"secret"`
	CA      string          `yaml:"ca"` // a file of certificates that vouch for the address or mail server
	Mail    *Mail           `yaml:"mail"`
	Atom    string          `yaml:"atom"` // a file

	quiet timetable.Hours
}

// Mail says by which server a digest goes to whom.
type Mail struct {
	Server   string        `yaml:"server"` // HOST:PORT; 465 begins with TLS, any other by STARTTLS
	From     string        `yaml:"from"`
	To       []string      `yaml:"to"`
	User     string        `yaml:"user"`
	Password layout.Secret `yaml:"password"`
}

// Tells reports whether a kind of news is told.
func (n *Wish) Tells(kind string) bool { return len(n.Of) == 0 || slices.Contains(n.Of, kind) }

// IsQuiet reports whether nothing is told at a time.
func (n *Wish) IsQuiet(t time.Time) bool { return len(n.Quiet) > 0 && n.quiet.Has(t) }

// Check checks notify:, by name.
func Check(y *layout.YAML, wishes map[string]*Wish) error {
	for name, n := range wishes {
		at := "$.notify." + name
		if _, err := layout.ParseName(name); err != nil {
			return y.Errorf("$.notify", "%v", err)
		}
		if n == nil {
			return y.Errorf(at, "expected one of command, url, mail and atom")
		}
		if key, err := n.check(); err != nil {
			return y.Errorf(at+key, "%v", err)
		}
	}
	return nil
}

func (n *Wish) check() (key string, err error) {
	ways := 0
	for _, is := range []bool{len(n.Command) > 0, n.URL != "", n.Mail != nil, n.Atom != ""} {
		if is {
			ways++
		}
	}
	if ways != 1 {
		return "", fmt.Errorf("expected one of command, url, mail and atom")
	}
	for i, kind := range n.Of {
		if !slices.Contains(kinds, kind) {
			return fmt.Sprintf(".of[%d]", i), fmt.Errorf("expected one of %s, not %q", strings.Join(kinds, ", "), kind)
		}
	}
	zone, err := time.LoadLocation(n.Zone)
	if err != nil || n.Zone == "Local" {
		return ".zone", fmt.Errorf("expected a time zone such as Europe/Berlin, not %q", n.Zone)
	}
	if len(n.Quiet) > 0 {
		if n.quiet, err = timetable.ParseHours(n.Quiet, zone); err != nil {
			return ".quiet", err
		}
	}
	if n.URL != "" {
		u, err := url.Parse(n.URL)
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil {
			return ".url", fmt.Errorf("expected an address such as https://example.org/hook, without a password%s", notThis(u, n.URL))
		}
	}
	if n.Secret != (layout.Secret{}) && n.URL == "" {
		return ".secret", fmt.Errorf("secret: is of url: alone")
	}
	if n.Mail != nil {
		return n.Mail.check()
	}
	return "", nil
}

func (m *Mail) check() (key string, err error) {
	if host, port, ok := strings.Cut(m.Server, ":"); !ok || host == "" || port == "" {
		return ".mail.server", fmt.Errorf("expected HOST:PORT, as smtp.example.org:587, not %q", m.Server)
	}
	if len(m.To) == 0 {
		return ".mail.to", fmt.Errorf("expected addresses")
	}
	for _, address := range append([]string{m.From}, m.To...) {
		if _, err := mail.ParseAddress(address); err != nil || strings.ContainsAny(address, "\r\n") {
			return ".mail", fmt.Errorf("expected an address such as ada@example.org, not %q", address)
		}
	}
	if (m.User == "") != (m.Password == (layout.Secret{})) {
		return ".mail", fmt.Errorf("user: and password: go together")
	}
	return "", nil
}

// SigningKey reads a webhook's secret: whsec_ and base64, as Standard Webhooks have it, or the
// key itself.
func SigningKey(text string) ([]byte, error) {
	key, coded := []byte(text), false
	if text, coded = strings.CutPrefix(text, "whsec_"); coded {
		var err error
		if key, err = base64.StdEncoding.DecodeString(text); err != nil {
			return nil, fmt.Errorf("the secret after whsec_ is no base64: %w", err)
		}
	}
	if len(key) == 0 {
		return nil, fmt.Errorf("the secret is empty")
	}
	return key, nil
}

// notThis shows what stands where an address is wanted, unless a password may be in it.
func notThis(u *url.URL, text string) string {
	if u == nil || u.User != nil {
		return ""
	}
	return fmt.Sprintf(", not %q", text)
}
