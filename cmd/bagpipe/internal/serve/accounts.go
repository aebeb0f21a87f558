package serve

import (
	"bufio"
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/engine"
	"bagpipe/engine/settings"
	"bagpipe/engine/web/access"
	"bagpipe/layout"

	"golang.org/x/term"
)

// User manages who signs in to the pages.
type User struct {
	Add    userAdd    `cmd:"" help:"Add a person who signs in, or change one; the password is read from standard input."`
	List   userList   `cmd:"" default:"withargs" help:"List the people who sign in."`
	Remove userRemove `cmd:"" help:"Remove a person; the person's acts stay in the history."`
}

// Token manages the accounts of programs.
type Token struct {
	Add    tokenAdd    `cmd:"" help:"Add a program's account, and print its token, which is shown once."`
	List   tokenList   `cmd:"" default:"withargs" help:"List the tokens."`
	Remove tokenRemove `cmd:"" help:"Remove a token; its program is refused from then on."`
}

// accountArgs say what an account may do.
type accountArgs struct {
	Role       string   `enum:",viewer,operator,admin" default:"" placeholder:"ROLE" help:"viewer looks; operator acts on items and uploads; admin also switches steps and moves workflows. Default: viewer."`
	Collection []string `xor:"within" placeholder:"NAME" help:"Only items of this collection; may be given several times."`
}

// accounts opens the accounts of the workspace around a folder.
func accounts(around screen.Around) (*access.Book, error) {
	root, err := engine.Find(string(around))
	if err != nil {
		return nil, err
	}
	return access.Open(root), nil
}

// check refuses collections that are not there: who is confined to one of a misspelt name sees
// nothing, and is told nothing.
func (c *accountArgs) check(around screen.Around) error {
	if len(c.Collection) == 0 {
		return nil
	}
	root, err := engine.Find(string(around))
	if err != nil {
		return err
	}
	data, err := os.ReadFile(filepath.Join(root, layout.SettingsFile))
	if err != nil {
		return err
	}
	s, err := settings.ParseSettings(layout.SettingsFile, data)
	if err != nil {
		return err
	}
	for _, name := range c.Collection {
		_, err := os.Stat(filepath.Join(root, layout.InboxDir, name))
		if !s.HasCollection(name, err == nil) {
			return fmt.Errorf("no collection %q; bagpipe collection lists them", name)
		}
	}
	return nil
}

// ownAccounts opens them to be changed, which only the workspace's own account may: a file of
// another the service could not read.
func ownAccounts(around screen.Around) (*access.Book, error) {
	root, err := engine.Find(string(around))
	if err == nil {
		err = engine.CheckOwner(root)
	}
	if err != nil {
		return nil, err
	}
	return access.Open(root), nil
}

type userAdd struct {
	Name     string `arg:"" help:"The name to sign in with."`
	FullName string `placeholder:"TEXT" help:"The name in the history; default: NAME."`
	Email    string `placeholder:"TEXT" help:"The address in the history."`
	accountArgs
	AllCollections bool `xor:"within" help:"Items of all collections, of one who was confined; other options that are not given change nothing."`
}

// Run adds a user.
func (c *userAdd) Run(on *screen.Screen, around screen.Around) error {
	book, err := ownAccounts(around)
	if err != nil {
		return err
	}
	if err := c.check(around); err != nil {
		return err
	}
	password, err := readPassword(on)
	if err != nil {
		return err
	}
	within := c.Collection
	if c.AllCollections {
		within = []string{}
	}
	if err := book.AddUser(c.Name, password, access.User{Name: c.FullName, Email: c.Email, Role: access.Role(c.Role), Collections: within}); err != nil {
		return err
	}
	users, err := book.Users()
	if err == nil {
		fmt.Fprintf(on.Out, "%s: %s\n", c.Name, users[c.Name].Role)
	}
	return err
}

// readPassword asks for a password on a terminal, or reads a line.
func readPassword(on *screen.Screen) (string, error) {
	if f, ok := on.In.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		fmt.Fprint(on.Err, "Password: ")
		first, err := term.ReadPassword(int(f.Fd()))
		if err != nil {
			return "", err
		}
		fmt.Fprint(on.Err, "\nAgain: ")
		again, err := term.ReadPassword(int(f.Fd()))
		fmt.Fprintln(on.Err)
		if err == nil && string(first) != string(again) {
			err = errors.New("the two are not the same")
		}
		return string(first), err
	}
	line, err := bufio.NewReader(io.LimitReader(on.In, 1<<12)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	return strings.TrimRight(line, "\r\n"), nil
}

type jsonArg struct {
	JSON bool `name:"json" help:"Print JSON."`
}

type userList struct{ jsonArg }

type userRow struct {
	User        string      `json:"user"`
	Name        string      `json:"name"`
	Email       string      `json:"email"`
	Role        access.Role `json:"role"`
	Collections []string    `json:"collections"`
}

// Run lists the users.
func (c *userList) Run(on *screen.Screen, around screen.Around) error {
	book, err := accounts(around)
	if err != nil {
		return err
	}
	users, err := book.Users()
	if err != nil {
		return err
	}
	rows := []userRow{}
	for _, name := range slices.Sorted(maps.Keys(users)) {
		u := users[name]
		rows = append(rows, userRow{name, u.Name, u.Email, u.Role, u.Collections})
	}
	if c.JSON {
		return on.JSON(rows)
	}
	if len(rows) == 0 {
		on.Talk("no users")
		return nil
	}
	t := screen.NewTable("user", "role", "name", "email", "collections")
	for _, r := range rows {
		t.Row(r.User, r.Role, r.Name, r.Email, strings.Join(r.Collections, ", "))
	}
	return t.Print(on.Out)
}

type userRemove struct {
	Name string `arg:"" help:"The name the person signs in with."`
}

// Run removes a user.
func (c *userRemove) Run(on *screen.Screen, around screen.Around) error {
	book, err := ownAccounts(around)
	if err == nil {
		err = book.RemoveUser(c.Name)
	}
	if err == nil {
		fmt.Fprintf(on.Out, "%s: removed\n", c.Name)
	}
	return err
}

type tokenAdd struct {
	Name    string        `arg:"" help:"The program's name, which stands in the history."`
	Expires time.Duration `placeholder:"TIME" help:"For how long it is good, as in 90d; default: until it is removed."`
	accountArgs
}

// Run adds a token.
func (c *tokenAdd) Run(on *screen.Screen, around screen.Around) error {
	book, err := ownAccounts(around)
	if err != nil {
		return err
	}
	if err := c.check(around); err != nil {
		return err
	}
	t := access.Token{Name: c.Name, Role: cmp.Or(access.Role(c.Role), access.Viewer), Collections: c.Collection}
	if c.Expires > 0 {
		t.Expires = time.Now().UTC().Add(c.Expires).Truncate(time.Second)
	}
	before, err := book.Tokens()
	if err != nil {
		return err
	}
	id, token, err := book.AddToken(rand.Reader, t)
	if err != nil {
		return err
	}
	for _, other := range slices.Sorted(maps.Keys(before)) {
		if before[other].Name == c.Name {
			on.Talk("%s has another token, %s, which stays good; to remove it: bagpipe token remove %s", c.Name, other, other)
		}
	}
	on.Talk("token %s of %s (%s); it is shown this once", id, c.Name, t.Role)
	fmt.Fprintln(on.Out, token)
	return nil
}

type tokenList struct{ jsonArg }

type tokenRow struct {
	Token       string      `json:"token"`
	Name        string      `json:"name"`
	Role        access.Role `json:"role"`
	Collections []string    `json:"collections"`
	Expires     time.Time   `json:"expires,omitzero"`
}

// Run lists the tokens.
func (c *tokenList) Run(on *screen.Screen, around screen.Around) error {
	book, err := accounts(around)
	if err != nil {
		return err
	}
	tokens, err := book.Tokens()
	if err != nil {
		return err
	}
	rows := []tokenRow{}
	for _, id := range slices.Sorted(maps.Keys(tokens)) {
		t := tokens[id]
		rows = append(rows, tokenRow{id, t.Name, t.Role, t.Collections, t.Expires})
	}
	if c.JSON {
		return on.JSON(rows)
	}
	if len(rows) == 0 {
		on.Talk("no tokens")
		return nil
	}
	t := screen.NewTable("token", "role", "name", "expires", "collections")
	for _, r := range rows {
		t.Row(r.Token, r.Role, r.Name, screen.When(r.Expires), strings.Join(r.Collections, ", "))
	}
	return t.Print(on.Out)
}

type tokenRemove struct {
	Token string `arg:"" help:"The token's identifier, as listed."`
}

// Run removes a token.
func (c *tokenRemove) Run(on *screen.Screen, around screen.Around) error {
	book, err := ownAccounts(around)
	if err == nil {
		err = book.RemoveToken(c.Token)
	}
	if err == nil {
		fmt.Fprintf(on.Out, "%s: removed\n", c.Token)
	}
	return err
}
