package delivery

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bagpipe/layout"
	"bagpipe/steps/target"
)

// What a kill leaves of a note is written over by the next put, and gone once the item is.
func TestNotesOfAFolderLeaveNothing(t *testing.T) {
	id, err := layout.NewItemID(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	o, p := folderOutlet{dir, func(context.Context) (bool, error) { return false, nil }}, parcel{Key: "key", Item: id}
	half := o.note(id) + ".tmp"
	leave := func() {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(half), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(half, []byte("{"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	left := func() int {
		names, err := filepath.Glob(filepath.Join(dir, ".bagpipe", "*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(names)
	}
	leave()
	if _, err := o.put(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if _, has, err := o.ask(t.Context(), p); err != nil || !has || left() != 1 {
		t.Errorf("it has the delivery: %v, %v; %d files beside", has, err, left())
	}
	leave()
	if err := o.remove(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if n := left(); n != 0 {
		t.Errorf("%d files are left", n)
	}
}

// What stands in an item's place without a note is somebody's else: it is neither overwritten nor taken away. With one it is
// a delivery, also one that a kill left half-way.
func TestFoldersOfOthersAreLeftAlone(t *testing.T) {
	id, err := layout.NewItemID(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	o, p := folderOutlet{t.TempDir(), func(context.Context) (bool, error) { return false, nil }}, parcel{Key: "key", Item: id}
	p.add("new", []byte("new"))
	file := filepath.Join(o.place(id), "f")
	stands := func(name string) bool {
		_, err := os.Lstat(filepath.Join(o.place(id), name))
		return err == nil
	}
	put := func() {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("x"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	put()
	if _, err := o.put(t.Context(), p); err == nil || Away(err) || !strings.HasSuffix(err.Error(), "it is not overwritten") || !stands("f") {
		t.Errorf("put: %v; what was there stands: %v", err, stands("f"))
	}
	if err := o.remove(t.Context(), p); err != nil || !stands("f") {
		t.Errorf("remove: %v; what was there stands: %v", err, stands("f"))
	}
	if err := errors.Join(os.MkdirAll(o.notes(), 0o777), o.write(placeNote{p, true})); err != nil {
		t.Fatal(err)
	}
	if _, has, err := o.ask(t.Context(), p); err != nil || has {
		t.Errorf("half a delivery counts as whole: %v, %v", has, err)
	}
	if _, err := o.put(t.Context(), p); err != nil || stands("f") || !stands("new") {
		t.Errorf("half a delivery is not replaced: %v", err)
	}
	if _, has, err := o.ask(t.Context(), p); err != nil || !has {
		t.Errorf("a delivery is not known: %v, %v", has, err)
	}
	if err := o.remove(t.Context(), p); err != nil || stands(".") {
		t.Errorf("remove: %v; it stands: %v", err, stands("."))
	}
}

// The first delivery of a folder may come between the look at it and the question whether anything was delivered.
func TestFirstDeliveryBesideAnother(t *testing.T) {
	dir, come := t.TempDir(), false
	o := folderOutlet{dir, func(context.Context) (bool, error) {
		if come {
			return true, os.MkdirAll(filepath.Join(dir, ".bagpipe"), 0o777)
		}
		return true, nil
	}}
	if err := o.there(t.Context()); !Away(err) {
		t.Errorf("a folder without what was delivered is there: %v", err)
	}
	come = true
	if err := o.there(t.Context()); err != nil {
		t.Error(err)
	}
}

// A target that takes a DELETE gives the item until it answers 404 or 410. Any other answer does not say that it is gone.
func TestTakenBackOnlyOnceItIsGone(t *testing.T) {
	for status, want := range map[int]struct{ gone, away bool }{
		http.StatusNotFound: {gone: true}, http.StatusGone: {gone: true},
		http.StatusOK: {}, http.StatusUnauthorized: {}, http.StatusFound: {},
		http.StatusServiceUnavailable: {away: true}, http.StatusTooManyRequests: {away: true},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodDelete {
				w.WriteHeader(http.StatusAccepted)
				return
			}
			w.WriteHeader(status)
		}))
		err := urlOutlet{address: s.URL + "/{item}", bytes: true}.remove(t.Context(), parcel{Key: "key"})
		s.Close()
		if (err == nil) != want.gone || Away(err) != want.away {
			t.Errorf("GET answers %d: %v", status, err)
		}
	}
}

// A STAC item that goes to an address by itself names its files where the target says they are, and else none.
func TestWhereTheFilesOfADeliveredItemAre(t *testing.T) {
	o := &object{id: layout.ItemIDOf(7)}
	for _, c := range []struct {
		to   target.Config
		want string
	}{
		{target.Config{Kind: target.KindFolder}, "./a%20b"},
		{target.Config{Kind: target.KindURL}, ""},
		{target.Config{Kind: target.KindURL, Outlet: target.Outlet{Href: "https://files.example/x/"}}, "https://files.example/x/" + string(o.id) + "/a%20b"},
	} {
		got := ""
		if at := filesOf(o, c.to); at.Href != nil {
			got = at.Href("a%20b")
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.to.Kind, got, c.want)
		}
	}
}
