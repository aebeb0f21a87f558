package formats

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/richardlehane/siegfried/pkg/static"
)

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestIdentify(t *testing.T) {
	r, err := Load("")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, text, id, warning string }{
		{"a.pdf", "%PDF-1.4\n%%EOF\n", "fmt/18", ""},
		{"a.doc", "%PDF-1.4\n%%EOF\n", "fmt/18", "extension mismatch"},
		{"a.txt", "plain words\n", "x-fmt/111", ""},
		{"a.qqq", "\x00\x01\x02\x03", "", "no match"},
		{"empty.txt", "", "x-fmt/111", "match on extension only"},
	} {
		got, err := r.Identify(write(t, c.name, c.text), c.name)
		if got.ID != c.id || !strings.Contains(got.Warning, c.warning) || (c.warning == "") != (got.Warning == "") {
			t.Errorf("%s %q: got %+v (%v), want %s %q", c.name, c.text, got, err, c.id, c.warning)
		}
	}
}

// A signature file that is cut or garbled is refused, not half used.
func TestBrokenSignatureFiles(t *testing.T) {
	var whole bytes.Buffer
	if err := static.New().SaveWriter(&whole); err != nil {
		t.Fatal(err)
	}
	all := whole.String()
	for _, text := range []string{"", "no signatures", all[:10], all[:len(all)/2]} {
		if r, err := Load(write(t, "x.sig", text)); err == nil {
			t.Errorf("%d bytes: loaded %q", len(text), r.Name)
		}
	}
	if _, err := Load(write(t, "x.sig", all)); err != nil {
		t.Error(err)
	}
}

func FuzzIdentify(f *testing.F) {
	r, err := Load("")
	if err != nil {
		f.Fatal(err)
	}
	path := filepath.Join(f.TempDir(), "fuzzed")
	f.Add([]byte("PK\x03\x04"), "a.docx")
	f.Add([]byte("%PDF-1.7"), "a.pdf")
	f.Add([]byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"), "a.doc")
	f.Fuzz(func(t *testing.T, data []byte, name string) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := r.Identify(path, name); err == nil && got.ID == "" && got.Warning == "" {
			t.Errorf("%q: neither a format nor why not", name)
		}
	})
}

// FuzzLoad: a signature file that somebody hands over is used or refused, and what is used identifies a file.
func FuzzLoad(f *testing.F) {
	var whole bytes.Buffer
	if err := static.New().SaveWriter(&whole); err != nil {
		f.Fatal(err)
	}
	dir := f.TempDir()
	page := filepath.Join(dir, "a.pdf")
	if err := os.WriteFile(page, []byte("%PDF-1.4\n%%EOF\n"), 0o600); err != nil {
		f.Fatal(err)
	}
	// A whole file is some megabytes: it is told by where it is cut, and which byte of it is another.
	f.Add(uint32(0), uint32(0), byte(0), []byte("no signatures"))
	f.Add(uint32(whole.Len()), uint32(200), byte(1), []byte(nil))
	f.Fuzz(func(t *testing.T, end, at uint32, by byte, text []byte) {
		data := append(text, whole.Bytes()[:int(end)%(whole.Len()+1)]...)
		if len(data) > 0 {
			data[int(at)%len(data)] ^= by
		}
		path := filepath.Join(dir, "fuzzed.sig")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Skip(err)
		}
		r, err := Load(path)
		if err != nil {
			return
		}
		if r.Name == "" {
			t.Error("signatures without a name")
		}
		_, _ = r.Identify(page, "a.pdf") // it ends, and answers something
	})
}
