package pages

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"bagpipe/engine/web/access"
	"bagpipe/engine/web/internal/desk"
	"bagpipe/engine/web/internal/door"
)

type signInView struct {
	Users bool // there are accounts with passwords
	Next  string
	Wrong string
}

// SignIn answers /signin, which strangers reach: a one-time link, and the form of a name and
// a password. A link is taken by a button: what looks at links beforehand must not use it up.
func (p *Pages) SignIn() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodGet && r.FormValue("once") != "":
			p.render(w, r, http.StatusOK, "enter", r.FormValue("once"))
		case r.Method == http.MethodGet:
			p.form(w, r, http.StatusOK, "")
		case r.Method != http.MethodPost:
			w.Header().Set("Allow", "GET, POST")
			p.problem(w, r, http.StatusMethodNotAllowed, "Only GET and POST are answered here.")
		case r.PostFormValue("leave") != "":
			p.door.Leave(w, r)
			http.Redirect(w, r, p.d.Base+"signin", http.StatusSeeOther)
		default:
			p.enter(w, r)
		}
	})
}

func (p *Pages) enter(w http.ResponseWriter, r *http.Request) {
	var who access.Who
	var err error
	name := r.PostFormValue("name")
	if once := r.PostFormValue("once"); once != "" {
		if who, err = p.door.Enter(w, once); err != nil {
			err = errors.New("this link was used already; the program prints a new one when it starts")
		}
	} else {
		who, err = p.door.SignIn(w, r, name, r.PostFormValue("password"))
	}
	if err != nil {
		p.d.Log.Warn("sign-in refused", "name", name, "from", r.RemoteAddr, "error", err)
		status := http.StatusUnauthorized
		if errors.Is(err, door.ErrTooMany) {
			w.Header().Set("Retry-After", "60")
			status = http.StatusTooManyRequests
		}
		p.form(w, r, status, err.Error())
		return
	}
	p.d.Log.Info("signed in", "name", who.Name, "role", string(who.Role), "from", r.RemoteAddr)
	http.Redirect(w, r, p.d.Base+own(r.PostFormValue("next")), http.StatusSeeOther)
}

// own is an address below the base; of any other, the first page.
func own(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.IsAbs() || u.Host != "" || u.User != nil || strings.HasPrefix(next, "/") || strings.Contains(next, `\`) {
		return ""
	}
	return strings.TrimPrefix(next, "/")
}

func (p *Pages) form(w http.ResponseWriter, r *http.Request, status int, wrong string) {
	users, err := p.d.Accounts.Users()
	if err != nil {
		p.refuse(w, r, err)
		return
	}
	p.render(w, r, status, "signin", signInView{Users: len(users) > 0, Next: own(r.FormValue("next")), Wrong: wrong})
}

// Strangers leads those who were not let in to the form.
func (p *Pages) Strangers(w http.ResponseWriter, r *http.Request, err error) {
	if !errors.Is(err, access.ErrDenied) {
		p.refuse(w, r, err)
		return
	}
	if r.Method != http.MethodGet {
		p.problem(w, r, desk.Status(desk.ErrForbidden), "You are signed out; sign in, and do it again.")
		return
	}
	next := "signin"
	if here := strings.TrimPrefix(r.URL.RequestURI(), "/"); here != "" {
		next += "?next=" + url.QueryEscape(here)
	}
	http.Redirect(w, r, p.d.Base+next, http.StatusSeeOther)
}
