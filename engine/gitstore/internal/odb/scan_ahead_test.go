package odb

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A Scan that reads ahead gives what is asked, whatever the index says, and Rest tells of an index that does not
// lead to what was read: one that mixes up two objects, lacks one, or has its names out of order.
func TestAScanReadsAhead(t *testing.T) {
	b := NewBuilder()
	var commits, blobs []Hash
	var tree []byte
	var placed Placed
	for i := range 40 {
		blobs = append(blobs, b.AddBlob(fmt.Appendf(nil, "record %d", i), Hash{}))
		old := tree
		tree = AppendEntry(nil, ModeFile, "record", blobs[i])
		var root Hash
		root, placed = b.AddTree(tree, old, placed)
		who := Person{Name: "Ada", Email: "ada@example.org", When: time.Unix(int64(i), 0)}
		var parents []Hash
		if i > 0 {
			parents = commits[i-1:]
		}
		commits = append(commits, b.AddCommit(AppendCommit(nil, root, parents, who, who, "a change")))
	}
	pack, index, name := b.Finish()
	at := map[Hash]int{}
	for i, e := range b.entries {
		at[e.name] = i
	}
	with := func(change func(entries []entry) []entry) []byte {
		return appendIndex(nil, change(append([]entry(nil), b.entries...)), name)
	}
	unordered := bytes.Clone(index)
	names := unordered[indexHead:][:20*len(b.entries)]
	copy(names[20*7:], index[indexHead+20*8:][:20])
	copy(names[20*8:], index[indexHead+20*7:][:20])
	offsets := unordered[indexHead+24*len(b.entries):]
	copy(offsets[4*7:], index[indexHead+24*len(b.entries)+4*8:][:4])
	copy(offsets[4*8:], index[indexHead+24*len(b.entries)+4*7:][:4])
	for what, c := range map[string]struct {
		index []byte
		found bool
	}{
		"as it was written": {index, false},
		"mixed up": {with(func(e []entry) []entry {
			x, y := &e[at[commits[20]]], &e[at[commits[21]]]
			x.off, y.off = y.off, x.off
			return e
		}), true},
		"one is not there": {with(func(e []entry) []entry { return append(e[:at[blobs[20]]], e[at[blobs[20]]+1:]...) }), true},
		"out of order":     {unordered, true},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "pack", "pack-"+name.String())
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		for ext, data := range map[string][]byte{".pack": pack, ".idx": c.index} {
			if err := os.WriteFile(path+ext, data, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		db, err := Open(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		bulk := db.Bulk()
		s := bulk.Scan(NewDigests())
		s.Ahead()
		for i := range commits {
			for h, kind := range map[Hash]Type{commits[i]: TypeCommit, blobs[i]: TypeBlob} {
				data, err := s.ReadNext(h, kind)
				if err != nil || Name(kind, data) != h {
					t.Errorf("index %s: %s %s reads as %.40q, %v", what, kind, h, data, err)
				}
			}
		}
		if err := bulk.Rest(s.digests, func() error { return nil }); errors.Is(err, ErrDigest) != c.found || !c.found && err != nil {
			t.Errorf("index %s: %v", what, err)
		}
		if err := errors.Join(bulk.Close(), db.Close()); err != nil {
			t.Error(err)
		}
	}
}
