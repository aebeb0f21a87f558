package steps

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bagpipe/bags"
	"bagpipe/bags/files"
	"bagpipe/bags/tagfile"
	"bagpipe/layout"
	"bagpipe/testdata/sample"
)

const testItem layout.ItemID = "3fa9c0d2e1b7a49"

// item is one work item's folder with what the engine does around a robot:
// an empty scratch, outputs published by rename, what goes removed.
type item struct {
	t         testing.TB
	dir       string
	store     string
	inventory []byte
	metadata  map[string]any
	with      map[string]any
	attempt   int
	now       time.Time
	log       bytes.Buffer
}

// newItem takes in a drop: a file with data, or a folder's files.
func newItem(t testing.TB, name string, files map[string]string) *item {
	t.Helper()
	root := sample.TempDir(t)
	it := &item{t: t, dir: filepath.Join(root, "item"), store: filepath.Join(root, "store"), now: time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)}
	must(t, os.MkdirAll(filepath.Join(it.dir, "source"), 0o755))
	must(t, os.Mkdir(it.store, 0o755))
	if data, ok := files[""]; ok {
		must(t, os.WriteFile(filepath.Join(it.dir, "source", name), []byte(data), 0o644))
		return it
	}
	writeFiles(t, filepath.Join(it.dir, "source", name), files)
	return it
}

func writeFiles(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	must(t, os.MkdirAll(dir, 0o755))
	for p, data := range files {
		to := filepath.Join(dir, p)
		must(t, os.MkdirAll(filepath.Dir(to), 0o755))
		must(t, os.WriteFile(to, []byte(data), 0o644))
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// call is one attempt, in a scratch folder of its own.
func (it *item) call() *Call {
	it.t.Helper()
	it.attempt++
	scratch, err := os.MkdirTemp(filepath.Dir(it.dir), "scratch-")
	must(it.t, err)
	key, err := layout.ParseAttemptKey("1-5c1e9a70")
	must(it.t, err)
	key.N = it.attempt
	manifest, err := layout.Manifest{Item: testItem, Version: 1, Collection: "default", Label: "Diaries 1871", Metadata: it.metadata}.Encode(nil)
	must(it.t, err)
	content := filepath.Join(it.dir, "content")
	if _, err := os.Stat(content); err != nil {
		names, err := os.ReadDir(filepath.Join(it.dir, "source"))
		must(it.t, err)
		content = filepath.Join(it.dir, "source", names[0].Name())
	}
	return &Call{
		Item: testItem, Collection: "default", Label: "Diaries 1871", Workflow: "accession.1", Step: "step", Attempt: key,
		With:    it.with,
		Folders: Folders{Dir: it.dir, Source: filepath.Join(it.dir, "source"), Content: content, Scratch: scratch, Store: it.store},
		Records: Records{Manifest: manifest, Inventory: it.inventory},
		Means:   Means{Log: &it.log, Now: func() time.Time { return it.now }},
	}
}

// run does a robot as the engine would.
func (it *item) run(robot layout.Name) (Result, error) {
	it.t.Helper()
	c := it.call()
	r, err := Builtins()[robot].Robot.Run(it.t.Context(), c)
	if err == nil {
		it.publish(c, r)
	}
	must(it.t, os.RemoveAll(c.Scratch))
	return r, err
}

func (it *item) publish(c *Call, r Result) {
	it.t.Helper()
	for _, o := range r.Outputs {
		to := filepath.Join(it.dir, string(o.To))
		must(it.t, os.RemoveAll(to))
		must(it.t, os.MkdirAll(filepath.Dir(to), 0o755))
		must(it.t, os.Rename(filepath.Join(c.Scratch, string(o.From)), to))
	}
	for _, p := range r.Remove {
		must(it.t, os.RemoveAll(filepath.Join(it.dir, string(p))))
	}
	if r.Inventory != nil {
		data, err := r.Inventory.Encode()
		must(it.t, err)
		it.inventory = data
	}
}

// pass runs robots that must succeed, each twice: the second time changes
// nothing.
func (it *item) pass(robots ...layout.Name) {
	it.t.Helper()
	for _, robot := range robots {
		if _, err := it.run(robot); err != nil {
			it.t.Fatalf("%s: %v", robot, err)
		}
		before := it.state()
		if _, err := it.run(robot); err != nil {
			it.t.Fatalf("%s again: %v", robot, err)
		}
		if after := it.state(); after != before {
			it.t.Fatalf("%s again changed the item:\n%s\nwas:\n%s", robot, after, before)
		}
	}
}

// state is every file of item and store, with content.
func (it *item) state() string {
	it.t.Helper()
	var b strings.Builder
	for _, root := range []string{it.dir, it.store} {
		tree, err := files.Scan(context.Background(), root)
		must(it.t, err)
		for _, f := range tree.Files {
			data, err := os.ReadFile(filepath.Join(root, f.Path))
			must(it.t, err)
			b.WriteString(f.Path + "\x00" + string(data) + "\n")
		}
		for _, f := range tree.Folders {
			b.WriteString(f.Path + "/\n")
		}
	}
	b.Write(it.inventory)
	return b.String()
}

func (it *item) read(p string) string {
	it.t.Helper()
	data, err := os.ReadFile(filepath.Join(it.dir, p))
	must(it.t, err)
	return string(data)
}

func (it *item) deposited() string { return filepath.Join(it.store, "3/f/a/9", string(testItem)) }

func wantFailure(t *testing.T, err error, kind Kind, parts ...string) {
	t.Helper()
	var f *Failure
	if !errors.As(err, &f) || f.Kind != kind {
		t.Fatalf("error %v, want a %s failure", err, kind)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("%q does not say %q", err, p)
		}
	}
}

func zipFile(t testing.TB, files map[string]string) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for p, data := range files {
		f, err := w.Create(p)
		must(t, err)
		_, err = io.WriteString(f, data)
		must(t, err)
	}
	must(t, w.Close())
	return b.String()
}

func tarFile(t testing.TB, files map[string]string) string {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for p, data := range files {
		must(t, w.WriteHeader(&tar.Header{Name: p, Mode: 0o644, Size: int64(len(data))}))
		_, err := io.WriteString(w, data)
		must(t, err)
	}
	must(t, w.Close())
	return b.String()
}

// aBag is a valid bag's files, as a producer sends it.
func aBag(t testing.TB) map[string]string {
	t.Helper()
	dir := sample.TempDir(t)
	writeFiles(t, filepath.Join(dir, "payload"), map[string]string{"a.txt": "one", "d/ü.txt": "two"})
	_, err := bags.Create(t.Context(), bags.CreateOptions{
		Payload: filepath.Join(dir, "payload"), Dest: filepath.Join(dir, "bag"), Date: time.Date(2001, 2, 3, 0, 0, 0, 0, time.UTC),
		Info: []tagfile.Field{{Label: "Source-Organization", Value: "Parish"}, {Label: "Contact-Name", Value: "A"}, {Label: "Contact-Name", Value: "B"}},
	})
	must(t, err)
	tree, err := files.Scan(t.Context(), filepath.Join(dir, "bag"))
	must(t, err)
	files := map[string]string{}
	for _, f := range tree.Files {
		data, err := os.ReadFile(filepath.Join(tree.Dir, f.Path))
		must(t, err)
		files[f.Path] = string(data)
	}
	return files
}

func within(prefix string, files map[string]string) map[string]string {
	out := map[string]string{}
	for p, data := range files {
		out[prefix+p] = data
	}
	return out
}

// Every kind of drop goes all the way, every robot twice.
func TestEveryDropIsDeposited(t *testing.T) {
	received := aBag(t)
	for _, c := range []struct {
		about, name string
		files       map[string]string
		payload     map[string]string // of the deposited bag
		tags        []string
	}{
		{"folder", "diaries", map[string]string{"a.txt": "A", "d/b": "B", ".DS_Store": "mac", "100%": "C"},
			map[string]string{"a.txt": "A", "d/b": "B", ".DS_Store": "mac", "100%": "C"}, nil},
		{"loose file", "one.pdf", map[string]string{"": "%PDF-1.4"}, map[string]string{"one.pdf": "%PDF-1.4"}, nil},
		{"zip", "x.zip", map[string]string{"": zipFile(t, map[string]string{"x/a": "A", "x/b/c": "C"})},
			map[string]string{"x/a": "A", "x/b/c": "C"}, nil},
		{"tar", "x.tar", map[string]string{"": tarFile(t, map[string]string{"a": "A"})}, map[string]string{"a": "A"}, nil},
		{"document", "x.docx", map[string]string{"": zipFile(t, map[string]string{"[Content_Types].xml": "<Types/>"})}, nil, nil},
		{"bag as a folder", "bag", received, map[string]string{"a.txt": "one", "d/ü.txt": "two"}, []string{"received/bagit.txt", "received/manifest-sha512.txt"}},
		{"bag in a zip", "bag.zip", map[string]string{"": zipFile(t, within("bag/", received))},
			map[string]string{"a.txt": "one", "d/ü.txt": "two"}, []string{"received/bagit.txt"}},
		{"bag with a Mac's traces", "bag.zip", map[string]string{"": zipFile(t, func() map[string]string {
			all := within("bag/", received)
			all["__MACOSX/._bag"], all[".DS_Store"] = "mac", "mac"
			return all
		}())}, map[string]string{"a.txt": "one", "d/ü.txt": "two"}, []string{"received/bagit.txt", "outside/__MACOSX/._bag", "outside/.DS_Store"}},
	} {
		t.Run(c.about, func(t *testing.T) {
			it := newItem(t, c.name, c.files)
			it.pass("unpack", "validate", "inventory", "bag", "deposit", "cleanup")
			if _, err := os.Stat(filepath.Join(it.dir, "derived/bag")); !os.IsNotExist(err) {
				t.Errorf("derived/bag after cleanup: %v", err)
			}
			r, err := bags.Validate(t.Context(), it.deposited(), bags.ValidateOptions{})
			if err != nil || !r.Valid || r.Version != "1.0" {
				t.Fatalf("deposited bag: %+v, %v", r, err)
			}
			for p, want := range c.payload {
				got, err := os.ReadFile(filepath.Join(it.deposited(), "data", p))
				if err != nil || string(got) != want {
					t.Errorf("data/%s: %q, %v", p, got, err)
				}
			}
			if c.payload != nil && r.PayloadFiles != int64(len(c.payload)) {
				t.Errorf("%d payload files, want %d", r.PayloadFiles, len(c.payload))
			}
			for _, p := range c.tags {
				if _, err := os.Stat(filepath.Join(it.deposited(), p)); err != nil {
					t.Error(err)
				}
			}
			left, err := os.ReadDir(filepath.Dir(it.deposited()))
			if err != nil || len(left) != 1 {
				t.Errorf("beside the deposit: %v, %v", left, err)
			}
		})
	}
}

func TestBagWithoutUnpackTakesTheDropItself(t *testing.T) {
	it := newItem(t, "one.txt", map[string]string{"": "text"})
	it.pass("inventory", "bag")
	if got := it.read("derived/bag/" + string(testItem) + "/data/one.txt"); got != "text" {
		t.Errorf("payload %q", got)
	}
}
