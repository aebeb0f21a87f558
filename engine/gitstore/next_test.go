package gitstore

import (
	"context"
	"errors"
	"testing"
)

// What follows on a change is committed behind it, each with what was before it in sight, until
// one is refused or there is none; what was made before stands.
func TestWhatFollowsOnAChangeIsCommittedBehindIt(t *testing.T) {
	wrong := func() { t.Error("a commit was told of that was not made") }
	for name, last := range map[string]func() (*Change, error){
		"none":    func() (*Change, error) { return nil, nil },
		"refused": func() (*Change, error) { return nil, errors.New("refused") },
		"impossible path": func() (*Change, error) {
			return &Change{Files: map[string][]byte{"../x": {}}, Message: "out", Made: wrong}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := initRoot(t, testOptions(), nil)
			s := openRoot(t, root, testOptions())
			var sees, made []string
			var step func(text string) func(Reader) (*Change, error)
			step = func(text string) func(Reader) (*Change, error) {
				return func(r Reader) (*Change, error) {
					if text == "done" {
						return last()
					}
					before, err := r.ReadFile("items/x")
					if err == nil {
						sees = append(sees, string(before))
					}
					next := map[string]string{"one": "two", "two": "three", "three": "done"}[text]
					return &Change{Files: map[string][]byte{"items/x": []byte(text)}, Message: text, Author: someone, Next: step(next), Made: func() { made = append(made, text) }}, nil
				}
			}
			hash, err := s.Commit(context.Background(), step("one"))
			if err != nil {
				t.Fatal(err)
			}
			if got := git(t, root, "log", "--format=%s", "-3"); got != "three\ntwo\none" {
				t.Errorf("log %q", got)
			}
			if got := git(t, root, "rev-parse", "HEAD"); got != hash.String() {
				t.Errorf("answered %s, the branch is at %s", hash, got)
			}
			if len(sees) != 2 || sees[0] != "one" || sees[1] != "two" {
				t.Errorf("saw %q", sees)
			}
			if len(made) != 3 || made[2] != "three" {
				t.Errorf("told of %q", made)
			}
			fsck(t, root)
		})
	}
}
