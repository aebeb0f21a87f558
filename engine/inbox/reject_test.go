package inbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestReject(t *testing.T) {
	w := newBench(t)
	for i, want := range []string{"letters", "letters.2", "letters.3"} {
		w.drop("letters")
		w.later(3 * time.Second)
		where, err := w.Reject(context.Background(), w.settled("letters"), "duplicate", "is item 3fa9c0d2 already")
		if err != nil {
			t.Fatal(err)
		}
		if where != w.path("rejected/default", want) {
			t.Errorf("%d: rejected to %s", i, where)
		}
		if f := filesBelow(t, where); len(f) != 2 || f["a.txt"] != "a of letters" {
			t.Errorf("%q", f)
		}
		var r reasonFile
		if err := json.Unmarshal([]byte(w.files("rejected/default")[want+".reason.json"]), &r); err != nil {
			t.Fatal(err)
		}
		if r.Name != "letters" || r.Rule != "duplicate" || r.Reason != "is item 3fa9c0d2 already" || r.Collection != "default" ||
			r.Where != "rejected/default/"+want || r.Time.IsZero() || r.Schema != 1 {
			t.Errorf("%+v", r)
		}
	}
	w.wantEmpty("inbox/default")
}

// What was set aside is listed with its reason and its batch, as long as it is there;
// also what somebody put there without one, or with one that cannot be read.
func TestRejections(t *testing.T) {
	w := newBench(t)
	for _, name := range []string{"kept", "taken back", "odd%", "notes.reason.json"} {
		w.write("inbox/default/june/"+name, "x")
		d := Drop{Collection: "default", Batch: "june", Name: name, Path: w.path("inbox/default/june", name)}
		if _, err := w.Reject(context.Background(), d, "trial", "for "+name); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(w.path("rejected/default/taken back")); err != nil {
		t.Fatal(err)
	}
	w.write("rejected/maps/by hand", "x")
	w.write("rejected/maps/changed", "x")
	w.write("rejected/maps/changed.reason.json", "{")
	w.write("rejected/maps/alone.reason.json", "{}")
	w.write("rejected/loose.txt", "x")
	found, err := w.Rejections()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range found {
		got = append(got, fmt.Sprintf("%s|%s|%s|%s|%s|%t", r.Drop, r.Batch, r.Rule, r.Reason, r.Where, r.Time.IsZero()))
	}
	want := []string{
		"default/kept|june|trial|for kept|rejected/default/kept|false",
		"default/notes.reason.json|june|trial|for notes.reason.json|rejected/default/notes.reason.json|false",
		"default/odd%25|june|trial|for odd%|rejected/default/odd%25|false",
		"maps/by hand||||rejected/maps/by hand|true",
		"maps/changed||||rejected/maps/changed|true",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestRejectOddNames(t *testing.T) {
	w := newBench(t)
	for _, n := range oddNames {
		w.write("inbox/default/"+n, n)
		d := Drop{Collection: "default", Name: n, Path: w.path("inbox/default", n)}
		where, err := w.Reject(context.Background(), d, "trial", "for the test")
		if err != nil {
			t.Fatalf("%q: %v", n, err)
		}
		data, err := os.ReadFile(where)
		if err != nil || string(data) != n {
			t.Errorf("%q: %q, %v", n, data, err)
		}
		if _, err := os.Stat(where + reasonSuffix); err != nil {
			t.Error(err)
		}
	}
}

func TestRejectOfWhatIsGone(t *testing.T) {
	w := newBench(t)
	w.drop("letters")
	w.later(3 * time.Second)
	d := w.settled("letters")
	if err := os.RemoveAll(d.Path); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Reject(context.Background(), d, "trial", "for the test"); !errors.Is(err, ErrGone) {
		t.Errorf("Reject = %v, want ErrGone", err)
	}
	w.wantEmpty("rejected/default")
}

// A crash after the reason leaves a reason without a drop, which the next
// rejection of that name writes over.
func TestRejectCutShort(t *testing.T) {
	w := newBench(t)
	w.drop("letters")
	w.write("rejected/default/letters.reason.json", "cut")
	w.later(3 * time.Second)
	where, err := w.Reject(context.Background(), w.settled("letters"), "trial", "for the test")
	if err != nil || where != w.path("rejected/default/letters") {
		t.Fatalf("%s, %v", where, err)
	}
	if f := w.files("rejected/default"); len(f) != 3 || !strings.Contains(f["letters.reason.json"], "for the test") {
		t.Errorf("%q", f)
	}
}

func TestRejectTaken(t *testing.T) {
	w := newBench(t)
	got := w.take("letters")
	where, err := w.RejectTaken(context.Background(), got, "duplicate", "is there already")
	if err != nil {
		t.Fatal(err)
	}
	if f := filesBelow(t, filepath.Dir(where)); !maps.Equal(map[string]string{"letters/a.txt": f["letters/a.txt"],
		"letters/sub/b.txt": f["letters/sub/b.txt"]}, dropFiles("letters")) {
		t.Errorf("%q", f)
	}
	w.wantEmpty("intake")
	w.wantEmpty("inbox/default")
	if _, err := w.RejectTaken(context.Background(), w.promoted(w.take("other")), "late", "too late"); err == nil {
		t.Error("a promoted drop was rejected")
	}
}
