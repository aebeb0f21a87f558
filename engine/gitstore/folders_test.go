package gitstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"sync"
	"testing"
)

// folders gives what Folders visits, as PATH=the file's bytes, or PATH gone.
func folders(t *testing.T, v View, since Hash) (seen []string) {
	t.Helper()
	var mu sync.Mutex
	err := v.Folders(context.Background(), since, "items", 2, func(f Folder) error {
		data, err := f.ReadFile("file")
		if err != nil {
			return err
		}
		none, err := f.ReadFile("none")
		if none != nil || err != nil {
			t.Errorf("%s has a file that is not there: %q, %v", f.Path, none, err)
		}
		mu.Lock()
		defer mu.Unlock()
		if f.Gone {
			seen = append(seen, f.Path+" gone")
			return nil
		}
		seen = append(seen, fmt.Sprintf("%s=%s", f.Path, data))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(seen)
	return seen
}

// TestFoldersThatDiffer: between any two commits the folders visited are those whose
// file is another, is new or is gone; since nothing, all of them.
func TestFoldersThatDiffer(t *testing.T) {
	s := openRoot(t, initRoot(t, testOptions(), nil), testOptions())
	random := rand.New(rand.NewSource(1))
	now := map[string]string{}
	type point struct {
		at    Hash
		files map[string]string
	}
	var points []point
	for n := range 12 {
		change := &Change{Files: map[string][]byte{}, Message: "change\n", Author: someone}
		for range 1 + random.Intn(6) {
			dir := fmt.Sprintf("items/%x/%x", random.Intn(3), random.Intn(5))
			if _, there := now[dir]; there && random.Intn(3) == 0 {
				delete(now, dir)
				change.Files[dir+"/file"] = nil
				continue
			}
			now[dir] = fmt.Sprint(n, random.Intn(100))
			change.Files[dir+"/file"] = []byte(now[dir])
		}
		h, err := s.Commit(context.Background(), func(Reader) (*Change, error) { return change, nil })
		if err != nil {
			t.Fatal(err)
		}
		files := map[string]string{}
		for k, v := range now {
			files[k] = v
		}
		points = append(points, point{h, files})
	}
	for _, from := range append(points, point{}) {
		for _, to := range points {
			since := Hash{}
			if !from.at.IsZero() {
				v, err := s.At(from.at)
				if err != nil {
					t.Fatal(err)
				}
				since = v.Tree()
			}
			var want []string
			for dir, text := range to.files {
				if was, there := from.files[dir]; !there || was != text {
					want = append(want, dir+"="+text)
				}
			}
			for dir := range from.files {
				if _, there := to.files[dir]; !there {
					want = append(want, dir+" gone")
				}
			}
			slices.Sort(want)
			v, err := s.At(to.at)
			if err != nil {
				t.Fatal(err)
			}
			if got := folders(t, v, since); !slices.Equal(got, want) {
				t.Fatalf("from %s to %s:\n%s\nwant:\n%s", from.at, to.at, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
	}
}

// An error of visit ends the walk and is given, and no goroutine stays.
func TestFoldersEndWithAnError(t *testing.T) {
	s := openRoot(t, initRoot(t, testOptions(), nil), testOptions())
	var pairs []string
	for i := range 2000 {
		pairs = append(pairs, fmt.Sprintf("items/%d/%d/file", i%7, i), "x")
	}
	put(t, s, pairs...)
	v, err := s.Tip()
	if err != nil {
		t.Fatal(err)
	}
	bad := errors.New("enough")
	if err := v.Folders(context.Background(), Hash{}, "items", 2, func(Folder) error { return bad }); !errors.Is(err, bad) {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := v.Folders(ctx, Hash{}, "items", 2, func(Folder) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if there, err := s.HasTree(v.Tree()); !there || err != nil {
		t.Errorf("%v, %v", there, err)
	}
	if there, err := s.HasTree(Hash{1}); there || err != nil {
		t.Errorf("%v, %v", there, err)
	}
}
