package access

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
)

// Two passwords are hashed at once, each of which takes 64 MiB; others wait for their turn, whether they are new or
// tried.
func TestTwoPasswordsAtOnce(t *testing.T) {
	dir := t.TempDir()
	if err := Open(dir).AddUser("ada", "correct horse", User{}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "access/users.json"))
	if err != nil || !strings.Contains(string(data), `"$argon2id$v=19$m=65536,`) {
		t.Errorf("%s %v", data, err)
	}
	synctest.Test(t, func(t *testing.T) {
		b := Open(dir)
		done := make(chan error)
		b.turns <- struct{}{}
		b.turns <- struct{}{} // two are at it
		for _, work := range []func() error{
			func() error { return b.AddUser("bob", "correct horse", User{}) },
			func() error { _, err := b.SignIn("ada", "correct horse"); return err },
			func() error { _, err := b.SignIn("nobody", "correct horse"); return err },
		} {
			go func() { done <- work() }()
		}
		synctest.Wait()
		select {
		case err := <-done:
			t.Errorf("a third came to its end: %v", err)
		default:
		}
		<-b.turns
		denied := 0
		for range 3 {
			if err := <-done; err == ErrDenied {
				denied++
			} else if err != nil {
				t.Error(err)
			}
		}
		if denied != 1 || len(b.turns) != 1 {
			t.Errorf("%d were denied, and %d turns are taken", denied, len(b.turns))
		}
	})
}
