package steps

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A bag made anew on another day differs in its date alone: the stored one is taken.
func TestDepositOfABagMadeAnewOnAnotherDay(t *testing.T) {
	it := bagged(t)
	it.pass("deposit")
	before := it.stored()
	it.now = it.now.Add(48 * time.Hour)
	it.pass("bag")
	r, err := it.run("deposit")
	if err != nil || !strings.Contains(r.Message, "deposited before") || !strings.Contains(r.Message, "Bagging-Date") {
		t.Fatalf("%q, %v", r.Message, err)
	}
	if after := it.stored(); after != before {
		t.Errorf("the store holds\n%s\nand held\n%s", after, before)
	}
	if r, err := it.run("cleanup"); err != nil || !strings.Contains(r.Message, "removed derived/bag") {
		t.Errorf("cleanup: %q, %v", r.Message, err)
	}
}

// Other metadata with the same payload is a revision beside the deposit.
func TestDepositOfARevision(t *testing.T) {
	it := bagged(t)
	it.pass("deposit")
	first := it.stored()
	for n, title := range []string{"Diaries of 1871", "Diaries, 1871"} {
		it.now = it.now.Add(24 * time.Hour)
		it.metadata = map[string]any{"External-Description": title}
		it.pass("bag", "deposit")
		info, err := os.ReadFile(filepath.Join(it.deposited()+"-r"+string(rune('2'+n)), "bag-info.txt"))
		if err != nil || !strings.Contains(string(info), title) {
			t.Fatalf("revision %d: %s, %v", n+2, info, err)
		}
		it.pass("cleanup", "deposit") // without derived/bag the newest is recognised
	}
	if now := it.stored(); !strings.HasPrefix(now, first) {
		t.Errorf("the first deposit was changed:\n%s", now)
	}
	it.metadata = map[string]any{"External-Description": "Diaries of 1871"}
	it.pass("bag")
	r, err := it.run("deposit")
	if err != nil || !strings.Contains(r.Message, "-r2; it differs in its Bagging-Date") {
		t.Errorf("a revision again: %q, %v", r.Message, err)
	}
	it.pass("cleanup")
}

// No revision is put beside another payload, or beside a damaged bag.
func TestDepositOfNoRevision(t *testing.T) {
	it := bagged(t)
	it.pass("deposit")
	thaw(t, it.deposited())
	must(t, os.WriteFile(filepath.Join(it.deposited(), "data/a"), []byte("Z"), 0o644))
	it.metadata = map[string]any{"External-Description": "other"}
	it.pass("bag")
	_, err := it.run("deposit")
	wantFailure(t, err, System, "not valid", "nothing was overwritten")

	other := bagged(t)
	other.pass("deposit")
	must(t, os.RemoveAll(filepath.Join(other.dir, "source/drop"))) // its files have second names in the bag
	must(t, os.RemoveAll(filepath.Join(other.dir, "content")))
	writeFiles(t, filepath.Join(other.dir, "source/drop"), map[string]string{"a": "another"})
	other.pass("unpack", "inventory", "bag")
	_, err = other.run("deposit")
	wantFailure(t, err, System, "another bag", "nothing was overwritten")
	_, err = other.run("cleanup")
	wantFailure(t, err, System, "nothing was removed")
}

// stored is every file in the store, with its content.
func (it *item) stored() string {
	it.t.Helper()
	var b strings.Builder
	must(it.t, filepath.WalkDir(it.store, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(p)
		b.WriteString(p + "\n" + string(data) + "\n")
		return err
	}))
	return b.String()
}
