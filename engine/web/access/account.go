package access

import (
	"fmt"
	"slices"
	"time"
)

// Role is what an account may do; each may do what those before it may.
type Role string

const (
	Viewer   Role = "viewer"   // looks
	Operator Role = "operator" // acts on items, uploads
	Admin    Role = "admin"    // switches steps, moves workflows, manages users
)

var roles = []Role{Viewer, Operator, Admin}

// ParseRole refuses what is no role.
func ParseRole(s string) (Role, error) {
	if slices.Contains(roles, Role(s)) {
		return Role(s), nil
	}
	return "", fmt.Errorf("expected viewer, operator or admin, not %q", s)
}

// May reports whether the role may do what needs another.
func (r Role) May(needs Role) bool {
	return slices.Contains(roles, r) && slices.Index(roles, r) >= slices.Index(roles, needs)
}

// Who is somebody who was let in.
type Who struct {
	Name        string   // as history names the person
	Email       string   // likewise
	Role        Role     //
	Collections []string // that the account is confined to; none: all
	Program     bool     // it is no person
}

// Reaches reports whether items of a collection are shown to this account.
func (w Who) Reaches(collection string) bool {
	return len(w.Collections) == 0 || slices.Contains(w.Collections, collection)
}

// User is a person's account.
type User struct {
	Name        string   `json:"name"` // as history names the person
	Email       string   `json:"email"`
	Role        Role     `json:"role"`
	Collections []string `json:"collections"`
	Password    string   `json:"password"` // its argon2id hash
}

// Token is a program's account.
type Token struct {
	Name        string    `json:"name"`
	Role        Role      `json:"role"`
	Collections []string  `json:"collections"`
	Expires     time.Time `json:"expires,omitzero"` // zero: never
	Digest      string    `json:"digest"`           // sha256:HEX of the token
}
