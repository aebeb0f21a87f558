package access_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bagpipe/engine/fault"
	"bagpipe/engine/web/access"
)

func TestUsersSignIn(t *testing.T) {
	root := t.TempDir()
	b := access.Open(root)
	if err := b.AddUser("ada", "short", access.User{Role: access.Viewer}); !fault.Is(err, fault.Invalid) {
		t.Errorf("a short password: %v", err)
	}
	if err := b.AddUser("ada", "correct horse", access.User{Name: "Ada Keeper", Role: access.Operator, Collections: []string{"maps"}}); err != nil {
		t.Fatal(err)
	}
	for _, other := range []*access.Book{b, access.Open(root)} {
		who, err := other.SignIn("ada", "correct horse")
		if err != nil || who.Name != "Ada Keeper" || !who.Role.May(access.Operator) || who.Role.May(access.Admin) {
			t.Errorf("signed in as %+v: %v", who, err)
		}
		if !who.Reaches("maps") || who.Reaches("default") {
			t.Errorf("%+v is not confined", who)
		}
	}
	for _, wrong := range [][2]string{{"ada", "correct hors"}, {"bob", "correct horse"}, {"", ""}} {
		if who, err := b.SignIn(wrong[0], wrong[1]); !errors.Is(err, access.ErrDenied) {
			t.Errorf("%q signed in as %+v: %v", wrong, who, err)
		}
	}
	path := filepath.Join(root, "access/users.json")
	data, _ := os.ReadFile(path)
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 || bytes.Contains(data, []byte("correct")) {
		t.Errorf("%v %v\n%s", info, err, data)
	}
	if err := b.RemoveUser("ada"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.SignIn("ada", "correct horse"); !errors.Is(err, access.ErrDenied) {
		t.Errorf("a removed user signed in: %v", err)
	}
	if err := b.RemoveUser("ada"); !fault.Is(err, fault.NotFound) {
		t.Errorf("removed twice: %v", err)
	}
}

func TestTokens(t *testing.T) {
	root := t.TempDir()
	b, now := access.Open(root), time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	id, token, err := b.AddToken(strings.NewReader(strings.Repeat("x", 40)), access.Token{Name: "scanner", Role: access.Operator, Expires: now.Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(root, "access/tokens.json")
	data, _ := os.ReadFile(path)
	_, secret, _ := strings.Cut(token, ".")
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 || len(secret) != 43 || bytes.Contains(data, []byte(secret)) || !bytes.Contains(data, []byte(`"digest": "sha256:`)) {
		t.Errorf("%v %v\n%s", info, err, data)
	}
	if who, err := b.Bearer(token, now); err != nil || who.Name != "scanner" || who.Role != access.Operator {
		t.Errorf("%+v %v", who, err)
	}
	for _, wrong := range []string{"", token + "x", "bagpipe_" + id + ".x", strings.TrimPrefix(token, "bagpipe_")} {
		if _, err := b.Bearer(wrong, now); !errors.Is(err, access.ErrDenied) {
			t.Errorf("token %q was taken: %v", wrong, err)
		}
	}
	if _, err := b.Bearer(token, now.Add(time.Hour)); !errors.Is(err, access.ErrDenied) {
		t.Errorf("an expired token was taken: %v", err)
	}
	if err := b.RemoveToken(id); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Bearer(token, now); !errors.Is(err, access.ErrDenied) {
		t.Errorf("a removed token was taken: %v", err)
	}
}
