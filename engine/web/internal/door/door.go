package door

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"bagpipe/engine/web/access"
)

const (
	cookieName   = "bagpipe"
	sessionLasts = 12 * time.Hour
	mostSessions = 10_000
)

// Proxy is a proxy whose word counts: it names the user in a header.
type Proxy struct {
	Header string
	From   []netip.Prefix // the addresses it asks from; none: there is no such proxy
}

// Door lets people and programs in.
type Door struct {
	Accounts *access.Book
	Proxy    Proxy
	Base     string // the path of the cookie
	Secure   bool   // the cookie is for TLS alone
	Now      func() time.Time
	Random   io.Reader

	mu       sync.Mutex // guards the rest
	sessions map[[32]byte]session
	links    map[[32]byte]access.Who
	tries    tries
	waiting  int // passwords that are compared, or wait for it
}

type session struct {
	who  access.Who
	user string // whose account it is; "": the one-time link's
	ends time.Time
}

// draw gives a secret of 256 bits.
func (d *Door) draw() (string, error) {
	b := make([]byte, 32)
	if _, err := io.ReadFull(d.Random, b); err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(b), nil
}

// Link gives a secret that lets whoever holds it in, once, as who.
func (d *Door) Link(who access.Who) (string, error) {
	secret, err := d.draw()
	if err != nil {
		return "", err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.links == nil {
		d.links = map[[32]byte]access.Who{}
	}
	d.links[sha256.Sum256([]byte(secret))] = who
	return secret, nil
}

// Enter begins a session by a link's secret.
func (d *Door) Enter(w http.ResponseWriter, secret string) (access.Who, error) {
	d.mu.Lock()
	key := sha256.Sum256([]byte(secret))
	who, ok := d.links[key]
	delete(d.links, key)
	d.mu.Unlock()
	if !ok {
		return who, access.ErrDenied
	}
	return who, d.begin(w, session{who: who})
}

// ErrTooMany is the answer to too many tries to sign in.
var ErrTooMany = errors.New("too many tries to sign in; try again in a minute")

// SignIn begins a session by a name and a password. Of one name and address, five tries a
// minute are looked at, of one address sixty, whatever the names.
func (d *Door) SignIn(w http.ResponseWriter, r *http.Request, name, password string) (access.Who, error) {
	if !d.mayTry(name, addressOf(r)) {
		return access.Who{}, ErrTooMany
	}
	defer d.tried()
	who, err := d.Accounts.SignIn(name, password)
	if err != nil {
		return who, err
	}
	return who, d.begin(w, session{who: who, user: name})
}

// The tries of a minute, and the comparisons that may wait for their turn: two run at once, each of
// some tenths of a second.
const (
	mostOfName    = 5
	mostOfAddress = 60
	mostWaiting   = 16
)

// mayTry reports whether a password is compared now; if so, tried ends that.
func (d *Door) mayTry(name, address string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.waiting >= mostWaiting || !d.tries.may(d.Now(), map[string]int{address: mostOfAddress, name + "\n" + address: mostOfName}) {
		return false
	}
	d.waiting++
	return true
}

func (d *Door) tried() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiting--
}

// tries are those of this minute and the one before, by whose they are. What is looked at is
// counted alone, so the addresses bound them.
type tries struct {
	now, before map[string][]time.Time
	began       time.Time
}

// may notes a try, unless one of those whose it is had as many within a minute.
func (t *tries) may(now time.Time, most map[string]int) bool {
	if now.Sub(t.began) >= time.Minute {
		t.before, t.now = t.now, map[string][]time.Time{}
		if now.Sub(t.began) >= 2*time.Minute {
			t.before = nil
		}
		t.began = now
	}
	for whose, n := range most {
		recent := 0
		for _, at := range append(t.before[whose][:len(t.before[whose]):len(t.before[whose])], t.now[whose]...) {
			if now.Sub(at) < time.Minute {
				recent++
			}
		}
		if recent >= n {
			return false
		}
	}
	for whose := range most {
		t.now[whose] = append(t.now[whose], now)
	}
	return true
}

func (d *Door) begin(w http.ResponseWriter, s session) error {
	secret, err := d.draw()
	if err != nil {
		return err
	}
	now := d.Now()
	s.ends = now.Add(sessionLasts)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.sessions == nil {
		d.sessions = map[[32]byte]session{}
	}
	for key, old := range d.sessions {
		if now.After(old.ends) || len(d.sessions) >= mostSessions {
			delete(d.sessions, key)
		}
	}
	d.sessions[sha256.Sum256([]byte(secret))] = s
	http.SetCookie(w, d.cookie(secret, int(sessionLasts.Seconds())))
	return nil
}

func (d *Door) cookie(value string, age int) *http.Cookie {
	return &http.Cookie{Name: cookieName, Value: value, Path: d.Base, MaxAge: age, HttpOnly: true, Secure: d.Secure, SameSite: http.SameSiteLaxMode}
}

// Leave ends the session of a request.
func (d *Door) Leave(w http.ResponseWriter, r *http.Request) {
	if c, err := r.Cookie(cookieName); err == nil {
		d.mu.Lock()
		delete(d.sessions, sha256.Sum256([]byte(c.Value)))
		d.mu.Unlock()
	}
	http.SetCookie(w, d.cookie("", -1))
}

// Who tells who asks; access.ErrDenied of nobody who is let in.
func (d *Door) Who(r *http.Request) (access.Who, error) {
	if token, ok := tokenOf(r); ok {
		return d.Accounts.Bearer(token, d.Now())
	}
	if name := d.named(r); name != "" {
		users, err := d.Accounts.Users()
		if err != nil {
			return access.Who{}, err
		}
		if u, ok := users[name]; ok {
			return u.Who(), nil
		}
		return access.Who{}, access.ErrDenied
	}
	c, err := r.Cookie(cookieName)
	if err != nil {
		return access.Who{}, access.ErrDenied
	}
	d.mu.Lock()
	s, ok := d.sessions[sha256.Sum256([]byte(c.Value))]
	d.mu.Unlock()
	if !ok || d.Now().After(s.ends) {
		return access.Who{}, access.ErrDenied
	}
	if s.user == "" {
		return s.who, nil
	}
	users, err := d.Accounts.Users() // the account may have been changed, or removed, since
	if err != nil {
		return access.Who{}, err
	}
	u, ok := users[s.user]
	if !ok {
		return access.Who{}, access.ErrDenied
	}
	return u.Who(), nil
}

// tokenOf is the token of a request: Bearer, or the password of Basic.
func tokenOf(r *http.Request) (string, bool) {
	if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		return token, true
	}
	_, password, ok := r.BasicAuth()
	return password, ok
}

// named is the user whom a listed proxy names; "" of every other request.
func (d *Door) named(r *http.Request) string {
	if d.Proxy.Header == "" {
		return ""
	}
	from, err := netip.ParseAddr(addressOf(r))
	if err != nil {
		return ""
	}
	for _, listed := range d.Proxy.From {
		if listed.Contains(from.Unmap()) {
			return r.Header.Get(d.Proxy.Header)
		}
	}
	return ""
}

// addressOf is the address a request came from, without its port.
func addressOf(r *http.Request) string {
	if at, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		return at.Addr().Unmap().WithZone("").String()
	}
	return r.RemoteAddr
}
