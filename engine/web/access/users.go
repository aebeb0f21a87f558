package access

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"strings"
	"unicode"

	"bagpipe/engine/fault"

	"github.com/alexedwards/argon2id"
)

// leastPassword is how many bytes a password has at least.
const leastPassword = 10

// checkName refuses what cannot stand in a form, a header and a list.
func checkName(what, name string) error {
	if name == "" || len(name) > 100 || strings.ContainsFunc(name, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) || r == ':' }) {
		return fault.New(fault.Invalid, fmt.Sprintf("%s %q: expected up to 100 characters without spaces and colons", what, name))
	}
	return nil
}

// AddUser adds a person who signs in with a name and a password, or changes one that is there: of
// it stays what u does not say, as a password that was forgotten is no reason to see more. Collections
// that are empty, and not nil, are all.
func (b *Book) AddUser(name, password string, u User) error {
	if err := checkName("user", name); err != nil {
		return err
	}
	if len(password) < leastPassword {
		return fault.New(fault.Invalid, fmt.Sprintf("the password is too short; expected %d characters or more", leastPassword))
	}
	b.turns <- struct{}{}
	hash, err := argon2id.CreateHash(password, argon2id.DefaultParams)
	<-b.turns
	if err != nil {
		return err
	}
	u.Password = hash
	return edit(b, "users.json", func(f *usersFile) error {
		users := maps.Clone(f.Users)
		if users == nil {
			users = map[string]User{}
		}
		was := users[name]
		u.Name, u.Email, u.Role = cmp.Or(u.Name, was.Name, name), cmp.Or(u.Email, was.Email), cmp.Or(u.Role, was.Role, Viewer)
		if u.Collections == nil {
			u.Collections = append([]string{}, was.Collections...)
		}
		users[name] = u
		*f = usersFile{schema, users}
		return nil
	})
}

// RemoveUser removes a person.
func (b *Book) RemoveUser(name string) error {
	return edit(b, "users.json", func(f *usersFile) error {
		users := maps.Clone(f.Users)
		if _, ok := users[name]; !ok {
			return fault.Unknown("user", name, "", maps.Keys(users))
		}
		delete(users, name)
		*f = usersFile{schema, users}
		return nil
	})
}

// ErrDenied is the answer to a wrong name, password or token.
var ErrDenied = errors.New("the name or the password is wrong")

// decoy is what the password of nobody is compared with: a name that is not there takes as
// long as one that is.
const decoy = "$argon2id$v=19$m=65536,t=1,p=2$c2FsdHNhbHRzYWx0c2FsdA$RdescudvJCsgt3ub+b4dWRWJTmaaJObGRdescudvJCs"

// SignIn tells who signs in with a name and a password.
func (b *Book) SignIn(name, password string) (Who, error) {
	users, err := b.Users()
	if err != nil {
		return Who{}, err
	}
	u, known := users[name]
	b.turns <- struct{}{}
	right, err := argon2id.ComparePasswordAndHash(password, cmp.Or(u.Password, decoy))
	<-b.turns
	if err != nil && known {
		return Who{}, err
	}
	if !known || !right {
		return Who{}, ErrDenied
	}
	return u.Who(), nil
}

// Who is the user as somebody who was let in.
func (u User) Who() Who {
	return Who{Name: u.Name, Email: u.Email, Role: u.Role, Collections: u.Collections}
}
