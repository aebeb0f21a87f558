package pages

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"

	"bagpipe/engine/ask"
	"bagpipe/engine/fault"
	"bagpipe/engine/web/access"
	"bagpipe/engine/web/internal/desk"
)

// accounts are the pages of who is let in, and of the settings.
type accounts struct{ d *desk.Desk }

type accountsView struct {
	Users       []userRow
	Tokens      []tokenRow
	Collections []ask.CollectionRow
	New         string // a token that was added: it is shown this once
}

type userRow struct {
	Login string
	access.User
}

type tokenRow struct {
	ID string
	access.Token
}

// mayManage refuses all but admins that reach every collection.
func (p accounts) mayManage(r *http.Request) error {
	if err := p.d.Whole(r.Context()); err != nil {
		return err
	}
	_, err := p.d.Acts(r.Context(), access.Admin)
	return err
}

// list shows people and programs that are let in.
func (p accounts) list(_ http.ResponseWriter, r *http.Request) (string, any, error) {
	return p.listWith(r, "")
}

func (p accounts) listWith(r *http.Request, token string) (string, any, error) {
	if err := p.mayManage(r); err != nil {
		return "", nil, err
	}
	users, err := p.d.Accounts.Users()
	if err != nil {
		return "", nil, err
	}
	tokens, err := p.d.Accounts.Tokens()
	if err != nil {
		return "", nil, err
	}
	v := accountsView{New: token}
	for _, name := range slices.Sorted(maps.Keys(users)) {
		v.Users = append(v.Users, userRow{name, users[name]})
	}
	for _, id := range slices.Sorted(maps.Keys(tokens)) {
		v.Tokens = append(v.Tokens, tokenRow{id, tokens[id]})
	}
	v.Collections, err = p.d.Ask.Collections()
	return "users", v, err
}

// set adds or removes a person or a program.
func (p accounts) set(w http.ResponseWriter, r *http.Request) (string, any, error) {
	if err := p.mayManage(r); err != nil {
		return "", nil, err
	}
	name, did := r.PostFormValue("name"), "added"
	role, err := access.ParseRole(cmp.Or(r.PostFormValue("role"), string(access.Viewer)))
	if err != nil {
		return "", nil, fault.New(fault.Invalid, err.Error())
	}
	var within []string
	for _, c := range r.PostForm["collection"] {
		if c != "" {
			within = append(within, c)
		}
	}
	token := ""
	switch what := r.PostFormValue("do"); what {
	case "add-user":
		err = p.d.Accounts.AddUser(name, r.PostFormValue("password"), access.User{Name: strings.TrimSpace(r.PostFormValue("full")), Email: strings.TrimSpace(r.PostFormValue("email")), Role: role, Collections: within})
	case "add-token":
		t := access.Token{Name: name, Role: role, Collections: within}
		lasts, bad := desk.Duration(r.PostFormValue("expires"))
		if bad != nil {
			return "", nil, bad
		}
		if lasts > 0 {
			t.Expires = p.d.Now().UTC().Add(lasts)
		}
		_, token, err = p.d.Accounts.AddToken(p.d.Random, t)
	case "remove-user":
		did, err = "removed", p.d.Accounts.RemoveUser(name)
	case "remove-token":
		did, err = "removed", p.d.Accounts.RemoveToken(name)
	default:
		err = fault.New(fault.Invalid, "expected what to do")
	}
	if err != nil {
		return "", nil, err
	}
	p.d.Log.Info("accounts", "did", r.PostFormValue("do"), "account", name, "role", string(role), "name", desk.Who(r.Context()).Name, "from", r.RemoteAddr)
	if token != "" {
		return p.listWith(r, token)
	}
	http.Redirect(w, r, p.d.Base+"users?did="+did, http.StatusSeeOther)
	return "", nil, nil
}

// settings shows the files that people edit, as they are in force.
func (p accounts) settings(_ http.ResponseWriter, r *http.Request) (string, any, error) {
	if err := p.d.Whole(r.Context()); err != nil {
		return "", nil, err
	}
	files, err := p.d.Ask.SettingsFiles(r.Context())
	return "settings", files, err
}
