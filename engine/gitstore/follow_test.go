package gitstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"bagpipe/layout/disk"
)

func followItems(o Options) Options {
	o.Follow = func(p string) bool { return strings.HasSuffix(p, ".json") }
	return o
}

func caughtUp(t testing.TB, s *Store) {
	t.Helper()
	if err := s.CaughtUp(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func file(t testing.TB, root, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, name))
	if os.IsNotExist(err) {
		return "<none>"
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestFollowedFilesAppearAndGo(t *testing.T) {
	root := initRoot(t, testOptions(), nil)
	s := openRoot(t, root, followItems(testOptions()))
	put(t, s, "items/a/e.json", "1", "items/a/hidden.txt", "2")
	caughtUp(t, s)
	if got := file(t, root, "items/a/e.json"); got != "1" {
		t.Errorf("e.json: %s", got)
	}
	if got := file(t, root, "items/a/hidden.txt"); got != "<none>" {
		t.Errorf("hidden.txt: %s", got)
	}
	if _, err := s.Commit(context.Background(), func(Reader) (*Change, error) {
		return &Change{Files: map[string][]byte{"items/a/e.json": nil}, Message: "delete"}, nil
	}); err != nil {
		t.Fatal(err)
	}
	caughtUp(t, s)
	if got := file(t, root, "items/a/e.json"); got != "<none>" {
		t.Errorf("e.json: %s", got)
	}
}

func TestEditedInPlaceIsKeptBeside(t *testing.T) {
	root := initRoot(t, testOptions(), nil)
	var edited []string
	o := followItems(testOptions())
	o.Edited = func(path, keptAs string) { edited = append(edited, path+" "+keptAs) }
	s := openRoot(t, root, o)
	put(t, s, "items/a/e.json", "1")
	caughtUp(t, s)
	if err := os.WriteFile(filepath.Join(root, "items/a/e.json"), []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	put(t, s, "items/a/e.json", "2")
	caughtUp(t, s)
	const kept = "items/a/e.json.edited-20261120T100000Z"
	if got := file(t, root, "items/a/e.json") + " " + file(t, root, kept); got != "2 mine" {
		t.Errorf("files: %s", got)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if strings.Join(edited, ";") != "items/a/e.json "+kept {
		t.Errorf("told of %v", edited)
	}
}

// Reading a pipe would wait for ever, and a link may lead to a device that never ends.
func TestPipesAndLinksInPlaceAreKeptBesideUnread(t *testing.T) {
	root := initRoot(t, testOptions(), nil)
	s := openRoot(t, root, followItems(testOptions()))
	put(t, s, "items/a/pipe.json", "1", "items/a/link.json", "1", "items/b/gone.json", "1")
	caughtUp(t, s)
	at := func(name string) string { return filepath.Join(root, "items", name) }
	for _, name := range []string{"a/pipe.json", "a/link.json", "b/gone.json"} {
		if err := os.Remove(at(name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(syscall.Mkfifo(at("a/pipe.json"), 0o644), os.Symlink("/dev/zero", at("a/link.json")), os.Symlink("/nowhere", at("b/gone.json"))); err != nil {
		t.Fatal(err)
	}
	put(t, s, "items/a/pipe.json", "2")
	caughtUp(t, s)
	if err := s.RepairAll(context.Background()); err != nil { // finds the links
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a/pipe.json": "2", "a/link.json": "1", "b/gone.json": "1"} {
		kept, err := os.Lstat(at(name + ".edited-20261120T100000Z"))
		if err != nil || kept.Mode().IsRegular() {
			t.Errorf("%s was not kept: %v", name, err)
		}
		if info, err := os.Lstat(at(name)); err != nil || !info.Mode().IsRegular() {
			t.Errorf("%s was not replaced: %v", name, err)
		} else if got := file(t, root, "items/"+name); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// A folder in a record's place is moved aside with all that is in it; one in the place of
// a record that is gone stays.
func TestAFolderInPlaceIsKeptBeside(t *testing.T) {
	root := initRoot(t, testOptions(), nil)
	var edited []string
	o := followItems(testOptions())
	o.Edited = func(path, keptAs string) { edited = append(edited, path+" "+keptAs) }
	s := openRoot(t, root, o)
	put(t, s, "items/a/full.json", "1", "items/a/again.json", "1", "items/a/gone.json", "1")
	caughtUp(t, s)
	at := func(name string) string { return filepath.Join(root, "items/a", name) }
	inPlace := func(name, content string) {
		if err := errors.Join(os.RemoveAll(at(name)), os.Mkdir(at(name), 0o755), os.WriteFile(at(name+"/in"), []byte(content), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	inPlace("full.json", "mine")
	inPlace("again.json", "first")
	inPlace("gone.json", "stays")
	put(t, s, "items/a/full.json", "2", "items/a/again.json", "2")
	if _, err := s.Commit(context.Background(), func(Reader) (*Change, error) {
		return &Change{Files: map[string][]byte{"items/a/gone.json": nil}, Message: "gone\n"}, nil
	}); err != nil {
		t.Fatal(err)
	}
	caughtUp(t, s)
	inPlace("again.json", "second")
	if err := s.RepairAll(context.Background()); err != nil {
		t.Fatal(err)
	}
	caughtUp(t, s)
	const kept = ".json.edited-20261120T100000Z"
	for name, want := range map[string]string{
		"full.json": "2", "full" + kept + "/in": "mine", "gone.json/in": "stays",
		"again.json": "2", "again" + kept + "/in": "first", "again" + kept + ".2/in": "second",
	} {
		if got := file(t, root, "items/a/"+name); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if len(edited) != 3 {
		t.Errorf("told of %v", edited)
	}
}

// A crash between the swap of two versions and the removal of the old one leaves that
// under its temporary name. It may have others: nothing is written to it any more.
func TestWhatACrashLeavesOfASwapIsNotWrittenTo(t *testing.T) {
	root := initRoot(t, testOptions(), nil)
	s := openRoot(t, root, followItems(testOptions()))
	put(t, s, "items/a/e.json", "1")
	caughtUp(t, s)
	at := func(name string) string { return filepath.Join(root, "items/a", name) }
	const kept = "e.json.edited-20261120T100000Z"
	if err := os.WriteFile(at(kept), []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(at(kept), at(".e.json.tmp")); err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "e.json") // as by cp -al
	if err := os.Link(at("e.json"), copied); err != nil {
		t.Fatal(err)
	}
	put(t, s, "items/a/e.json", "2")
	caughtUp(t, s)
	if got := file(t, root, "items/a/e.json") + " " + file(t, root, "items/a/"+kept); got != "2 mine" {
		t.Errorf("files: %s", got)
	}
	if data, err := os.ReadFile(copied); err != nil || string(data) != "1" {
		t.Errorf("the copy holds %q, %v", data, err)
	}
	if _, err := os.Lstat(at(".e.json.tmp")); err == nil {
		t.Error("the temporary file is left")
	}
}

func TestRepairBringsFilesInLine(t *testing.T) {
	root := initRoot(t, testOptions(), nil)
	plain := openRoot(t, root, testOptions()) // follows nothing: as if it had died before writing
	put(t, plain, "items/a/e.json", "1", "items/b/e.json", "1")
	if err := plain.Close(); err != nil {
		t.Fatal(err)
	}
	o := followItems(testOptions())
	repaired := func() {
		t.Helper()
		s, err := Open(root, o)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Repair(context.Background()); err != nil {
			t.Fatal(err)
		}
		if got := file(t, root, "items/a/e.json") + file(t, root, "items/b/e.json"); got != "11" {
			t.Errorf("files: %s", got)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	repaired()
	if got := file(t, root, ".bagpipe/followed"); !strings.Contains(got, git(t, root, "rev-parse", "main")) {
		t.Errorf("mark: %s", got)
	}
	// With the mark nothing is compared; without it everything is.
	if err := os.Remove(filepath.Join(root, "items/a/e.json")); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(root, ".bagpipe")); err != nil {
		t.Fatal(err)
	}
	repaired()
}

// TestRepairTakesOverFromAnEndedProcess: the store was opened while another one
// followed, which has ended when Repair comes.
func TestRepairTakesOverFromAnEndedProcess(t *testing.T) {
	root := t.TempDir()
	o := Options{Now: time.Now, Follow: func(string) bool { return true }}
	if err := Init(t.Context(), root, o, map[string][]byte{"a.txt": []byte("a")}, "first", Signature{Name: "A", Email: "a@example.org"}); err != nil {
		t.Fatal(err)
	}
	first, err := Open(root, o)
	if err != nil {
		t.Fatal(err)
	}
	second, err := Open(root, o)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := second.Repair(ctx); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(filepath.Join(root, "a.txt")); err != nil || string(data) != "a" {
		t.Errorf("%q, %v", data, err)
	}
}

func TestOneProcessFollowsAtATime(t *testing.T) {
	root := initRoot(t, testOptions(), nil)
	o := followItems(testOptions())
	first, second := openRoot(t, root, o), openRoot(t, root, o)
	put(t, first, "items/a/e.json", "1")
	put(t, second, "items/a/e.json", "2") // the first one writes it, when it looks
	caughtUp(t, second)
	if err := first.Refresh(context.Background()); err != nil {
		t.Fatal(err)
	}
	caughtUp(t, first)
	if got := file(t, root, "items/a/e.json"); got != "2" {
		t.Errorf("file: %s", got)
	}
	put(t, second, "items/a/e.json", "3")
	if err := first.Close(); err != nil { // without having looked
		t.Fatal(err)
	}
	third := openRoot(t, root, testOptions())
	put(t, third, "items/b/e.json", "4")
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	if got := file(t, root, "items/a/e.json"); got != "3" {
		t.Errorf("file: %s", got)
	}
}

// TestGivenUpBacklogIsWorkedOut gives the backlog up, as a full disk does: the
// owner goes on, and what is missing is worked out from the trees.
func TestGivenUpBacklogIsWorkedOut(t *testing.T) {
	root := initRoot(t, testOptions(), nil)
	s := openRoot(t, root, followItems(testOptions()))
	s.RepairRest() // gives the backlog up, as a full disk does
	for i := range 20 {
		put(t, s, "items/a/e.json", string(rune('a'+i)))
	}
	caughtUp(t, s)
	if got := file(t, root, "items/a/e.json"); got != "t" {
		t.Errorf("file: %s", got)
	}
}

// What a crash left of a file being written is gone after the next start, also where the
// file itself is behind and is amended.
func TestLeftoverBesideAFileBehindIsRemoved(t *testing.T) {
	o := testOptions()
	o.Follow = func(string) bool { return true }
	root := initRoot(t, testOptions(), nil)
	name := filepath.Join(root, "a", "e.json")
	for _, data := range []string{"1\n", "longer\n"} {
		old, _ := os.ReadFile(name)
		s := openRoot(t, root, o)
		_, err := s.Commit(context.Background(), func(Reader) (*Change, error) {
			return &Change{Files: map[string][]byte{"a/e.json": []byte(data)}, Message: "a"}, nil
		})
		if err = errors.Join(err, s.CaughtUp(context.Background()), s.Close()); err != nil {
			t.Fatal(err)
		}
		if old != nil { // as it was before the crash
			if err := os.WriteFile(name, old, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	temp := filepath.Join(root, "a", ".e.json.tmp")
	if err := os.WriteFile(temp, []byte("lon"), 0o644); err != nil {
		t.Fatal(err)
	}
	s := openRoot(t, root, o)
	if err := s.RepairAll(context.Background()); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(name); err != nil || string(data) != "longer\n" {
		t.Errorf("the file is %q, %v", data, err)
	}
	if _, err := os.Lstat(temp); err == nil {
		t.Error("what the crash left is there still")
	}
}

// A new folder gets its name when all its files are in it: who looks sees none of them or all. What a crash left of
// one is in no folder made after it, and is gone after the next start.
func TestANewFolderAppearsWhole(t *testing.T) {
	root := initRoot(t, testOptions(), nil)
	s := openRoot(t, root, followItems(testOptions()))
	temp := func(name string) string { return filepath.Join(root, "items", "."+name+".tmp") }
	leave := func(name string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(temp(name), 0o755), os.WriteFile(filepath.Join(temp(name), "stale.json"), nil, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	leave("a")
	done := make(chan struct{})
	looked := make(chan error, 1)
	go func() {
		var err error
		for over := false; !over; {
			select {
			case <-done:
				over = true
			default:
			}
			for _, name := range []string{"a", "b", "c", "d"} {
				if entries, _ := os.ReadDir(filepath.Join(root, "items", name)); len(entries) != 0 && len(entries) != 2 {
					err = fmt.Errorf("items/%s shows %v", name, entries)
				}
			}
		}
		looked <- err
	}()
	for _, name := range []string{"a", "b", "c", "d"} {
		put(t, s, "items/"+name+"/e.json", "1", "items/"+name+"/m.json", strings.Repeat("2", 1<<20))
		caughtUp(t, s)
		if got := file(t, root, "items/"+name+"/e.json"); got != "1" {
			t.Errorf("%s shows %s", name, got)
		}
	}
	close(done)
	if err := <-looked; err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// The machine stopped before a folder had its name.
	if err := os.Rename(filepath.Join(root, "items", "b"), temp("b")); err != nil {
		t.Fatal(err)
	}
	leave("b")
	s = openRoot(t, root, followItems(testOptions()))
	if err := s.RepairAll(context.Background()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		if entries, err := os.ReadDir(filepath.Join(root, "items", name)); err != nil || len(entries) != 2 {
			t.Errorf("items/%s shows %v, %v", name, entries, err)
		}
		if _, err := os.Lstat(temp(name)); err == nil {
			t.Errorf("what a crash left of %s is there still", name)
		}
	}
}

// waitsForAnother lets a folder be made below a path only while another one is.
type waitsForAnother struct {
	disk.FS
	below string
	in    atomic.Int32 // such folders being made
	once  sync.Once
	met   chan struct{} // closed when two were made at once
}

func (w *waitsForAnother) Mkdir(name string, perm fs.FileMode) error {
	if strings.HasPrefix(name, w.below) && strings.HasSuffix(name, ".tmp") {
		defer w.in.Add(-1)
		if w.in.Add(1) == 2 {
			w.once.Do(func() { close(w.met) })
		}
		select {
		case <-w.met:
		case <-time.After(5 * time.Second):
		}
	}
	return w.FS.Mkdir(name, perm)
}

// The files of several new folders are written side by side.
func TestFoldersAreWrittenSideBySide(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	o := followItems(testOptions())
	root := initRoot(t, o, nil)
	machine := &waitsForAnother{FS: disk.OS{}, below: filepath.Join(root, "items"), met: make(chan struct{})}
	o.FS = machine
	s := openRoot(t, root, o)
	files := map[string][]byte{}
	for i := range 4 {
		files[fmt.Sprintf("items/%d/a.json", i)], files[fmt.Sprintf("items/%d/b.json", i)] = []byte("a"), []byte("b")
	}
	if _, err := s.Commit(context.Background(), func(Reader) (*Change, error) { return &Change{Files: files, Message: "four"}, nil }); err != nil {
		t.Fatal(err)
	}
	caughtUp(t, s)
	select {
	case <-machine.met:
	default:
		t.Error("one folder was made after the other")
	}
	for path, want := range files {
		if got := file(t, root, path); got != string(want) {
			t.Errorf("%s: %q", path, got)
		}
	}
}

// looksInVain counts the folders and files below a path that are asked for where nothing is.
type looksInVain struct {
	disk.FS
	below string
	times atomic.Int32
}

func (l *looksInVain) note(name string, err error) {
	if strings.HasPrefix(name, l.below) && err != nil {
		l.times.Add(1)
	}
}

func (l *looksInVain) Mkdir(name string, perm fs.FileMode) error {
	err := l.FS.Mkdir(name, perm)
	l.note(name, err)
	return err
}

func (l *looksInVain) Lstat(name string) (fs.FileInfo, error) {
	info, err := l.FS.Lstat(name)
	l.note(name, err)
	return info, err
}

// In a folder that was just made no other is looked for; a folder that is made anew, after a person removed it, is
// made with what is above it.
func TestNothingIsLookedForInANewFolder(t *testing.T) {
	o := followItems(testOptions())
	root := initRoot(t, o, nil)
	machine := &looksInVain{FS: disk.OS{}, below: filepath.Join(root, "items")}
	o.FS = machine
	s := openRoot(t, root, o)
	show := func(dir string) {
		t.Helper()
		put(t, s, dir+"/e.json", "1", dir+"/m.json", "2")
		caughtUp(t, s)
		if e, m := file(t, root, dir+"/e.json"), file(t, root, dir+"/m.json"); e != "1" || m != "2" {
			t.Errorf("%s shows %s and %s", dir, e, m)
		}
	}
	show("items/a") // items is there from now on
	machine.times.Store(0)
	for i := range 4 {
		show(fmt.Sprintf("items/%d/x", i))
	}
	if n := machine.times.Load(); n != 0 {
		t.Errorf("%d folders and files were asked for in vain", n)
	}
	show("items/0/y")
	if err := os.RemoveAll(filepath.Join(root, "items")); err != nil {
		t.Fatal(err)
	}
	show("items/0/z")
	if err := os.MkdirAll(filepath.Join(root, "items/0/w/content"), 0o755); err != nil {
		t.Fatal(err)
	}
	show("items/0/w")
}

// What is deleted is gone before what takes its place is written, in whatever folders the files are.
func TestWhatTakesThePlaceOfAFileIsWrittenAfterIt(t *testing.T) {
	o := followItems(testOptions())
	root := initRoot(t, o, nil)
	s := openRoot(t, root, o)
	const at, below = "items/x.json", "items/x.json/below.json"
	for round := range 20 {
		for _, files := range []map[string][]byte{
			{at: []byte("file"), "items/a.json": []byte("a")},
			{at: nil, "items/b/b.json": []byte("b")},
			{below: []byte("below"), below + ".json": []byte("more")},
			{below: nil, below + ".json": nil, "items/b/c.json": []byte("c")},
			{at: []byte("again")},
		} {
			if _, err := s.Commit(context.Background(), func(Reader) (*Change, error) { return &Change{Files: files, Message: "turn"}, nil }); err != nil {
				t.Fatal(err)
			}
			if files[below] != nil && round%2 == 0 { // else all come together
				caughtUp(t, s)
				if got := file(t, root, below); got != "below" {
					t.Fatalf("round %d: %s: %q", round, below, got)
				}
			}
		}
		caughtUp(t, s)
		if got := file(t, root, at); got != "again" {
			t.Fatalf("round %d: %s: %q", round, at, got)
		}
	}
}

// What one process committed that ended while another one followed is shown when that one ends,
// though it never looked at the branch again.
func TestTheLastOneShowsWhatWasCommittedMeanwhile(t *testing.T) {
	o := followItems(testOptions())
	root := initRoot(t, o, nil)
	first, second := openRoot(t, root, o), openRoot(t, root, o)
	put(t, second, "items/a.json", "a")
	for _, s := range []*Store{second, first} {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if got := file(t, root, "items/a.json"); got != "a" {
		t.Errorf("items/a.json: %q", got)
	}
}
