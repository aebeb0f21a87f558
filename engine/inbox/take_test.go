package inbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestTakePromoteDone(t *testing.T) {
	w := newBench(t)
	w.drop("letters")
	w.later(3 * time.Second)
	d := w.settled("letters")
	ticket := Ticket{Workflow: "accession", Lane: "rush", Label: "Letters 1911", Batch: "b1", By: "Ada <ada@example.org>"}
	got, err := w.Take(context.Background(), d, ticket)
	if err != nil {
		t.Fatal(err)
	}
	w.wantEmpty("inbox/default")
	want := ticket
	want.Collection = "default"
	if got.Ticket != want || got.Name != "letters" || got.Collection != "default" || got.Kind != Folder || got.Files != 2 ||
		got.Origin != d.Path || got.Path != w.path("intake", string(got.ID), "source", "letters") || got.Promoted {
		t.Errorf("Taken = %+v", got)
	}
	source := "intake/" + string(got.ID) + "/source"
	w.wantFiles(source, dropFiles("letters"))

	home := w.promoted(got)
	again := w.promoted(got) // by the value from before: a crash forgets what followed
	if !reflect.DeepEqual(home, again) || !home.Promoted {
		t.Errorf("promoted twice: %+v, then %+v", home, again)
	}
	w.wantFiles("intake/"+string(got.ID), map[string]string{journalFile: w.files("intake/" + string(got.ID))[journalFile]})
	item := "items/" + strings.Join(strings.Split(string(got.ID)[:4], ""), "/") + "/" + string(got.ID) + "/source"
	w.wantFiles(item, dropFiles("letters"))
	for range 2 {
		if err := w.Done(home); err != nil {
			t.Fatal(err)
		}
	}
	w.wantEmpty("intake")
	w.wantFiles(item, dropFiles("letters"))
}

func TestJournal(t *testing.T) {
	w := newBench(t)
	w.write("inbox/default/b\xffd\n", "x")
	w.later(3 * time.Second)
	got, err := w.Take(context.Background(), w.settled("b\xffd\n"), Ticket{Label: "<&>"})
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(w.intakeOf(got.ID), journalFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"name": "b%FFd%0A"`, `"origin": "inbox/default/b%FFd%0A"`, `"label": "<&>"`, `"mode": "rename"`,
		`"engine": "` + string(w.opt.Engine) + `"`, `"schema": 1`} {
		if !strings.Contains(string(data), want) {
			t.Errorf("%s lacks %s", data, want)
		}
	}
	var sorted map[string]any
	if err := json.Unmarshal(data, &sorted); err != nil {
		t.Fatal(err)
	}
	if again, _ := encode(sorted); !bytes.Equal(again, data) {
		t.Errorf("keys are not sorted:\n%s", data)
	}
}

func TestTakeOfWhatIsGone(t *testing.T) {
	w := newBench(t)
	w.drop("letters")
	w.later(3 * time.Second)
	d := w.settled("letters")
	if err := os.RemoveAll(d.Path); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Take(context.Background(), d, Ticket{}); !errors.Is(err, ErrGone) {
		t.Errorf("Take = %v, want ErrGone", err)
	}
	for _, r := range w.TakeAll(context.Background(), []Request{{Drop: d}}) {
		if !errors.Is(r.Err, ErrGone) {
			t.Errorf("TakeAll = %v, want ErrGone", r.Err)
		}
	}
	w.wantEmpty("intake")
}

// What is taken is what was seen: anything else goes back and settles anew.
func TestTakeOfWhatChanged(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"folder became a file": func(p string) error {
			return errors.Join(os.RemoveAll(p), os.WriteFile(p, []byte("x"), 0o644))
		},
		"file grew": func(p string) error { return os.WriteFile(p+"/sub/b.txt", []byte("much longer than before"), 0o644) },
		"file came": func(p string) error { return os.WriteFile(p+"/sub/c.txt", nil, 0o644) },
		"link came": func(p string) error { return os.Symlink("/etc/passwd", p+"/sub/c.txt") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newBench(t)
			w.drop("letters")
			w.later(3 * time.Second)
			d := w.settled("letters")
			if err := change(d.Path); err != nil {
				t.Fatal(err)
			}
			before := w.files("inbox/default")
			if _, err := w.Take(context.Background(), d, Ticket{}); !errors.Is(err, ErrChanged) {
				t.Fatalf("Take = %v, want ErrChanged", err)
			}
			w.wantFiles("inbox/default", before)
			w.wantEmpty("intake")
		})
	}
}

func TestTakeOfReadOnlyFolder(t *testing.T) {
	w := newBench(t)
	w.drop("cd")
	if err := os.Chmod(w.path("inbox/default/cd"), 0o555); err != nil {
		t.Fatal(err)
	}
	w.later(3 * time.Second)
	got, err := w.Take(context.Background(), w.settled("cd"), Ticket{})
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(got.Path); err != nil || info.Mode().Perm() != 0o555 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

func TestUndo(t *testing.T) {
	w := newBench(t)
	got := w.take("letters")
	if err := w.Undo(got); err != nil {
		t.Fatal(err)
	}
	w.wantFiles("inbox/default", dropFiles("letters"))
	w.wantEmpty("intake")

	got = w.take("letters")
	w.write("inbox/default/letters", "somebody dropped the next one")
	if err := w.Undo(got); err != nil {
		t.Fatal(err)
	}
	want := dropFiles("letters.2")
	want["letters.2/a.txt"], want["letters.2/sub/b.txt"] = "a of letters", "b of letters"
	want["letters"] = "somebody dropped the next one"
	w.wantFiles("inbox/default", want)
	w.wantEmpty("intake")

	home := w.promoted(w.take("other"))
	if err := w.Undo(home); err == nil {
		t.Error("a promoted drop was put back")
	}
}

func TestTakeNeedsAnEngine(t *testing.T) {
	w := newBench(t)
	w.drop("letters")
	w.later(3 * time.Second)
	d := w.settled("letters")
	w.engine = ""
	if _, err := w.Take(context.Background(), d, Ticket{}); err == nil {
		t.Error("taken by nobody")
	}
	w.wantFiles("inbox/default", dropFiles("letters"))
}

func TestGroup(t *testing.T) {
	w := newBench(t)
	names := []string{"one", "two", "three"}
	for _, n := range names {
		w.drop(n)
	}
	w.later(3 * time.Second)
	var reqs []Request
	for _, n := range names {
		reqs = append(reqs, Request{Drop: w.settled(n), Ticket: Ticket{Label: n}})
	}
	if err := os.RemoveAll(w.path("inbox/default/two")); err != nil {
		t.Fatal(err)
	}
	var taken []Taken
	for i, r := range w.TakeAll(context.Background(), reqs) {
		switch {
		case i == 1 && !errors.Is(r.Err, ErrGone):
			t.Errorf("two: %v, want ErrGone", r.Err)
		case i != 1 && r.Err != nil:
			t.Fatal(r.Err)
		case i != 1:
			taken = append(taken, r.Taken)
		}
	}
	for i, r := range w.PromoteAll(context.Background(), taken) {
		if r.Err != nil || r.Taken.Ticket.Label != taken[i].Ticket.Label {
			t.Fatalf("%+v", r)
		}
		if err := w.Done(r.Taken); err != nil {
			t.Fatal(err)
		}
		if got := filesBelow(t, filepath.Dir(r.Taken.Path)); len(got) != 2 {
			t.Errorf("%v", got)
		}
	}
	w.wantEmpty("intake")
}

func TestDoneKeepsWhatIsNotPromoted(t *testing.T) {
	w := newBench(t)
	got := w.take("letters")
	if err := w.Done(got); err == nil {
		t.Error("Done before Promote")
	}
	got.Promoted = true // a caller's mistake
	if err := w.Done(got); err == nil {
		t.Error("Done before Promote")
	}
	w.wantFiles("intake/"+string(got.ID)+"/source", dropFiles("letters"))
}

// Undo by a value from before Promote must not take the journal from a drop that
// is in its item's folder.
func TestUndoAfterPromote(t *testing.T) {
	w := newBench(t)
	got := w.take("letters")
	w.promoted(got)
	if err := w.Undo(got); err == nil {
		t.Error("was undone")
	}
	if found := w.next().pending(); len(found) != 1 || !found[0].Promoted {
		t.Errorf("recovered %+v", found)
	}
}

// A promoted drop whose item is not to be after all is taken back, and is then any
// taken drop; a crash leaves what the next engine finds.
func TestDemote(t *testing.T) {
	w := newBench(t)
	taken := w.take("letters")
	back, err := w.Demote(w.promoted(taken))
	if err != nil || !reflect.DeepEqual(back, taken) {
		t.Fatalf("Demote = %+v, %v; want %+v", back, err, taken)
	}
	if same, err := w.Demote(back); err != nil || !reflect.DeepEqual(same, back) {
		t.Errorf("twice: %+v, %v", same, err)
	}
	if found := w.next().pending(); len(found) != 1 || found[0].Promoted {
		t.Errorf("pending %+v", found)
	}
	where, err := w.RejectTaken(context.Background(), back, "duplicate", "is known")
	if err != nil {
		t.Fatal(err)
	}
	if got := filesBelow(t, where); len(got) != 2 {
		t.Errorf("%v", got)
	}
	w.wantEmpty("intake")
	if files := w.files("items"); len(files) != 0 {
		t.Errorf("left in items/: %v", files)
	}
}
