package recognise

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bagpipe/bags/archive"
	"bagpipe/layout"
	"bagpipe/templates"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if code, ok := archive.Reader(); ok { // this process was started to read one archive
		os.Exit(code)
	}
	goleak.VerifyTestMain(m)
}

// shipped are the rules that a new workspace begins with.
func shipped(t testing.TB) []*File {
	t.Helper()
	var files []*File
	err := fs.WalkDir(templates.Workspace, layout.RulesDir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(p, ".yaml") {
			return err
		}
		data, err := templates.Workspace.ReadFile(p)
		if err != nil {
			return err
		}
		f, err := Parse(p, data)
		if err != nil {
			return err
		}
		if p != layout.RulesDir+"/"+f.Name+".yaml" {
			t.Errorf("%s has the name %s", p, f.Name)
		}
		files = append(files, f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// rules parses one rule file from its rules: list.
func rules(t testing.TB, text string) *File {
	t.Helper()
	f, err := Parse("rules/test.yaml", []byte("schema: 1\nname: test\n"+text))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// tree writes files below a new folder and gives the first one's top: what to drop.
func tree(t testing.TB, name string, content map[string]string) string {
	t.Helper()
	top := filepath.Join(t.TempDir(), name)
	for p, text := range content {
		at := filepath.Join(top, filepath.FromSlash(p))
		if err := os.MkdirAll(filepath.Dir(at), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return top
}

func file(t testing.TB, name, text string) string {
	t.Helper()
	return filepath.Join(tree(t, "", map[string]string{name: text}), name)
}

func zipped(t testing.TB, name string, content map[string]string) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for p, text := range content {
		header := &zip.FileHeader{Name: p, Method: zip.Deflate}
		if text == "" { // a compressor for each of thousands of empty files is a minute under the race detector
			header.Method = zip.Store
		}
		f, err := w.CreateHeader(header)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return file(t, name, b.String())
}

func tarred(t testing.TB, name string, content map[string]string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for p, text := range content {
		if err := w.WriteHeader(&tar.Header{Name: p, Mode: 0o644, Size: int64(len(text)), Format: tar.FormatPAX}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return file(t, name, b.String())
}

// ask asks the rules what a path is, were it dropped in collection maps.
func ask(t testing.TB, path string, files ...*File) *Outcome {
	t.Helper()
	o, err := NewBook(files).Recognise(t.Context(), Candidate{Path: path, Name: filepath.Base(path), Collection: "maps"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// said is what a rule said, as VERDICT: REASON.
func (o *Outcome) said(rule string) string {
	for _, t := range o.Tried {
		if t.Rule == rule {
			return t.Verdict.String() + ": " + t.Reason
		}
	}
	return "not asked"
}
