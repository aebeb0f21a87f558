package gitstore

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
)

// TestALineIsGits compares Line with git rev-list, and what a Scan gives of its commits with what a
// View gives. Where commits meet there is no line.
func TestALineIsGits(t *testing.T) {
	root := initRoot(t, testOptions(), nil)
	s := openRoot(t, root, testOptions())
	for i := range 30 {
		put(t, s, fmt.Sprintf("items/%d", i%7), fmt.Sprint(i))
	}
	tip := func() Hash { return tipOf(t, s) }
	ctx, c := context.Background(), NewScanning(s, false)
	defer c.Close()
	all, err := ParentsFirst(ctx, root, tip(), Hash{})
	if err != nil || len(all) < 31 {
		t.Fatalf("%d commits, %v", len(all), err)
	}
	early := make(chan Met, len(all)) // read by another goroutine while they are listed
	done := make(chan error)
	go func() {
		scan, err := c.Scan(), error(nil)
		for m := range early {
			got, now, failed := scan.Read(m)
			if err = errors.Join(err, failed); got.Hash != m.Hash || now.Commit() != m.Hash || got.Subject == "" {
				err = errors.Join(err, fmt.Errorf("%v is read as %+v", m.Hash, got))
			}
		}
		done <- err
	}()
	for _, n := range []int{0, 1, 17, len(all)} {
		var since Hash
		if n > 0 {
			since = all[n-1]
		}
		var met []Hash
		line, ok := c.Line(ctx, tip(), since, func(m Met) {
			met = append(met, m.Hash)
			if n == 0 {
				early <- m
			}
		})
		slices.Reverse(met)
		if !ok || !slices.Equal(line, all[n:]) || !slices.Equal(line, met) {
			t.Errorf("since %d of %d: %d commits, %v", n, len(all), len(line), ok)
		}
		scan := c.Scan()
		var before View
		for _, h := range line {
			got, now, err := scan.Commit(h)
			if want := aboutOf(t, s, h); err != nil || got.Subject != want.Subject || got.When != want.When || got.Hash != h {
				t.Fatalf("%v is read as %+v: %v", want, got, err)
			}
			sameFiles(t, s, scan, before, now)
			before = now
		}
	}
	close(early)
	if err := <-done; err != nil {
		t.Error(err)
	}
	aside := git(t, root, "commit-tree", "-m", "aside", "-p", all[20].String(), tip().String()+"^{tree}")
	git(t, root, "fsck", "--no-dangling")
	from, err := ParseHash(aside)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := c.Line(ctx, tip(), from, func(Met) {}); ok {
		t.Error("a commit beside the line was met on it")
	}
	merge, err := ParseHash(git(t, root, "commit-tree", "-m", "merge", "-p", tip().String(), "-p", aside, tip().String()+"^{tree}"))
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := c.Line(ctx, merge, Hash{}, func(Met) {}); ok {
		t.Error("a merge is part of a line")
	}
}

// sameFiles compares what is read of two commits that were compared with what a View of the store reads.
func sameFiles(t *testing.T, s *Store, scan *Scan, before, now View) {
	t.Helper()
	if err := scan.Diff(before, now, func(Difference) error { return nil }); err != nil {
		t.Fatal(err)
	}
	for _, v := range []View{before, now} {
		if v.Commit().IsZero() {
			continue
		}
		other, err := s.At(v.Commit())
		if err != nil {
			t.Fatal(err)
		}
		for _, dir := range []string{"items", ".", "none"} {
			got, err := v.ReadFiles(dir, "0", "3", "6", "bagpipe.yaml")
			want, errWant := other.ReadFiles(dir, "0", "3", "6", "bagpipe.yaml")
			if err != nil || errWant != nil || !reflect.DeepEqual(got, want) {
				t.Fatalf("%s at %s: %q, want %q: %v, %v", dir, v.Commit(), got, want, err, errWant)
			}
		}
	}
}

func tipOf(t *testing.T, s *Store) Hash {
	t.Helper()
	v, err := s.Tip()
	if err != nil {
		t.Fatal(err)
	}
	return v.Commit()
}

func aboutOf(t *testing.T, s *Store, h Hash) Commit {
	t.Helper()
	v, err := s.Tip()
	if err != nil {
		t.Fatal(err)
	}
	_, c, err := v.At(h)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
