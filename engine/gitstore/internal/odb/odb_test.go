package odb

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestDeltaRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		old := make([]byte, r.IntN(400))
		for i := range old {
			old[i] = byte(r.IntN(3))
		}
		fresh := bytes.Clone(old)
		if n := len(fresh); n > 0 {
			at := r.IntN(n)
			fresh = append(append(bytes.Clone(fresh[:at]), make([]byte, r.IntN(300))...), fresh[min(n, at+r.IntN(30)):]...)
		}
		got, err := applyDelta(old, appendDelta(nil, old, fresh))
		if err != nil || !bytes.Equal(got, fresh) {
			t.Fatalf("delta of %d to %d bytes: %v", len(old), len(fresh), err)
		}
	}
}

func TestAlignedDeltaRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	done := 0
	for range 2000 {
		old := make([]byte, r.IntN(600))
		for i := range old {
			old[i] = byte(r.IntN(256))
		}
		fresh := bytes.Clone(old)
		for range r.IntN(6) {
			for i := range r.IntN(20) {
				if at := r.IntN(600) + i; at < len(fresh) {
					fresh[at]++
				}
			}
		}
		most := r.IntN(700)
		delta, ok := appendAligned([]byte("before"), old, fresh, most)
		if delta = delta[len("before"):]; !ok {
			if len(delta) != 0 {
				t.Fatalf("%d bytes are left of a delta that was given up", len(delta))
			}
			continue
		}
		done++
		got, err := applyDelta(old, delta)
		if err != nil || !bytes.Equal(got, fresh) || len(delta) > most+8 {
			t.Fatalf("delta of %d to %d bytes in %d of %d: %v", len(old), len(fresh), len(delta), most, err)
		}
	}
	if done < 100 {
		t.Errorf("%d deltas were written", done)
	}
}

func TestLargeCopies(t *testing.T) {
	old := bytes.Repeat([]byte("0123456789abcdef"), 5<<16)
	for _, n := range []int{0xffff, 0x10000, 0x10001, 0xffffff, 0x1000000, len(old)} {
		n = min(n, len(old))
		got, err := applyDelta(old, appendDelta(nil, old, old[:n]))
		if err != nil || !bytes.Equal(got, old[:n]) {
			t.Errorf("copy of %#x bytes: %v", n, err)
		}
	}
}

func TestStoredAndDeflated(t *testing.T) {
	for _, n := range []int{0, 1, 100, maxStored, maxStored + 1, 3*maxStored + 7} {
		data := bytes.Repeat([]byte("x1"), n)[:n]
		for name, z := range map[string][]byte{
			"stored":   appendStored(nil, data),
			"deflated": deflaters.Get().(*deflater).append(nil, data),
		} {
			got, err := inflate(z, n, nil)
			if err != nil || !bytes.Equal(got, data) {
				t.Errorf("%s %d: %v", name, n, err)
			}
			z[len(z)-1] ^= 1
			if _, err := inflate(z, n, nil); err == nil {
				t.Errorf("%s %d: a wrong checksum was taken", name, n)
			}
		}
	}
}

func TestTreeOrderIsGits(t *testing.T) {
	tree := AppendEntry(nil, ModeFile, "a", Hash{1})
	tree = AppendEntry(tree, ModeFile, "a.b", Hash{1})
	tree = AppendEntry(tree, ModeDir, "a0", Hash{1}) // as "a0/"
	for _, c := range []struct {
		name   string
		dir    bool
		before string
	}{{"a-", false, "a.b"}, {"a", true, "a0"}, {"a.", true, "a.b"}, {"b", false, ""}, {"A", true, "a"}, {"a00", false, ""}} {
		if c.name == "a" {
			if _, found, _ := FindEntry(tree, "a", true); !found {
				t.Error("a file is not found when a folder is asked for")
			}
			continue
		}
		_, found, at := FindEntry(tree, c.name, c.dir)
		e, _ := EntryAt(tree, at)
		if found || string(e.Name) != c.before {
			t.Errorf("%q goes before %q, want %q", c.name, e.Name, c.before)
		}
	}
}

func TestCommitRoundTrip(t *testing.T) {
	author := Person{Name: " Ad<a>\n Exam.ple.", Email: "<ada@example.org>"}
	data := AppendCommit(nil, Hash{1}, []Hash{{2}, {3}}, author, Person{}, "subject\x00\n\nbody")
	c, err := ParseCommit(data)
	if err != nil {
		t.Fatal(err)
	}
	if c.Tree != (Hash{1}) || len(c.Parents) != 2 || c.Author.Name != "Ada  Exam.ple" || c.Author.Email != "ada@example.org" ||
		c.Committer.Name != "unknown" || c.Message != "subject\n\nbody\n" {
		t.Errorf("read back %+v", c)
	}
}

// TestReadsWhatGitWrites compares every object of a repository packed in several
// ways with git cat-file.
func TestReadsWhatGitWrites(t *testing.T) {
	dir := t.TempDir()
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a",
			"GIT_AUTHOR_EMAIL=b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=b")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("git %v: %v", args, err)
		}
		return string(out)
	}
	git("init", "-q", ".")
	big := strings.Repeat("a line that compresses\n", 3000)
	for i := range 12 {
		big += fmt.Sprint(i, "\n")
		for name, text := range map[string]string{"big": big, fmt.Sprint("f", i): fmt.Sprint(i)} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		git("add", ".")
		git("commit", "-qm", fmt.Sprint(i))
	}
	git("tag", "-am", "a tag", "v1")
	objects := strings.Fields(git("rev-list", "--objects", "--no-object-names", "--all"))
	db, err := Open(filepath.Join(dir, ".git/objects"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, packing := range [][]string{nil, {"repack", "-dq"}, {"repack", "-adfq", "--depth=50", "--window=50"},
		{"-c", "repack.useDeltaBaseOffset=false", "repack", "-adfq"}, {"-c", "pack.indexVersion=2", "repack", "-adq"}} {
		if packing != nil {
			git(packing...)
		}
		all := []Hash{}
		for _, name := range objects {
			h, err := ParseHash(name)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, h)
			typ, data, err := db.ReadUncached(h)
			if err != nil {
				t.Fatalf("after git %v: %v", packing, err)
			}
			if Name(typ, data) != h {
				t.Fatalf("after git %v: %s %s reads as %s", packing, typ, h, Name(typ, data))
			}
		}
		bulkAgrees(t, db, all)
		if ok, err := db.Has(Hash{9}); ok || err != nil {
			t.Errorf("has what is not there: %v %v", ok, err)
		}
	}
}

func FuzzReaders(f *testing.F) {
	f.Add([]byte("\x90\x01\x02\x03"), []byte("base"))
	f.Add(appendDelta(nil, []byte("one two three"), []byte("one 2 three")), []byte("one two three"))
	f.Add(append(appendEntryHeader(nil, TypeBlob, 3), appendStored(nil, []byte("abc"))...), []byte{})
	f.Fuzz(func(t *testing.T, data, base []byte) {
		if out, err := applyDelta(base, data); err == nil && len(out) > 1<<26 {
			t.Skip("a delta may repeat its base")
		}
		if r, size, n, err := parseEntryHeader(data, 1000); err == nil && size < 1<<20 {
			if out, err := inflate(data[n:], size, nil); err == nil && len(out) != size {
				t.Errorf("inflated %d bytes, not %d (%v)", len(out), size, r.t)
			}
		}
		if CheckTree(data) == nil {
			var again []byte
			for e := range Entries(data) {
				again = AppendEntry(again, e.Mode, string(e.Name), e.Hash)
			}
			if !bytes.Equal(again, data) {
				t.Error("a tree reads differently from what it is")
			}
		}
		if c, err := ParseCommit(data); err == nil && c.Tree.IsZero() && !bytes.Contains(data, []byte("0000")) {
			t.Error("a commit without tree was read")
		}
		Whole(data, base)
	})
}

func TestNamesAreFoundInIndexesOfAnySize(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 2, 63, 64, 65, 1000, 20_000} {
		list := make([]Hash, n)
		for i := range list {
			binary.BigEndian.PutUint64(list[i][1:], r.Uint64()) // one first byte, as in a bucket of the index
			if n == 1000 {
				list[i][1] = 0xff // as crowded as real names never are
			}
		}
		slices.SortFunc(list, func(a, b Hash) int { return slices.Compare(a[:], b[:]) })
		var names []byte
		for _, h := range list {
			names = append(names, h[:]...)
		}
		for i, h := range list {
			if got, ok := searchNames(names, h); !ok || got != i {
				t.Fatalf("of %d names, the %d-th is found at %d, %v", n, i, got, ok)
			}
			h[19] = 1
			if _, ok := searchNames(names, h); ok {
				t.Fatalf("of %d names, one that is not there is found", n)
			}
		}
	}
}
