package steps

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"bagpipe/bags"
	"bagpipe/bags/files"
	"bagpipe/bags/tagfile"
)

func (it *item) bagPath() string { return filepath.Join(it.dir, "derived/bag", string(testItem)) }

func TestBagComparesWithTheInventory(t *testing.T) {
	for about, change := range map[string]func(content string) error{
		"changed": func(c string) error { return os.WriteFile(filepath.Join(c, "d/b"), []byte("b"), 0o644) },
		"added":   func(c string) error { return os.WriteFile(filepath.Join(c, "d/b"), []byte("B"), 0o644) },
		"removed": func(c string) error { return nil },
	} {
		t.Run(about, func(t *testing.T) {
			files := map[string]string{"a": "A", "d/b": "B"}
			if about == "added" {
				delete(files, "d/b")
			}
			it := newItem(t, "drop", files)
			it.pass("unpack", "inventory")
			content := filepath.Join(it.dir, "content")
			must(t, os.MkdirAll(filepath.Join(content, "d"), 0o755))
			if about != "added" {
				must(t, os.Remove(filepath.Join(content, "d/b")))
			}
			must(t, change(content))
			_, err := it.run("bag")
			wantFailure(t, err, Content, "d/b", "fixity")
			if _, err := os.Stat(it.bagPath()); !os.IsNotExist(err) {
				t.Errorf("a bag was published: %v", err)
			}
		})
	}
}

func TestBagComparesReceivedTagFiles(t *testing.T) {
	it := newItem(t, "drop", aBag(t))
	it.pass("unpack", "inventory")
	p := filepath.Join(it.dir, "content/bag-info.txt")
	must(t, os.Remove(p))
	must(t, os.WriteFile(p, []byte("Forged: yes\n"), 0o644))
	_, err := it.run("bag")
	wantFailure(t, err, Content, "bag-info.txt", "fixity")
}

func TestBagInfo(t *testing.T) {
	it := newItem(t, "drop", aBag(t))
	it.metadata = map[string]any{
		"contact-name": []any{"C"}, "Bag-Group-Identifier": "group", "barcode": "36105", "External-Description": "Line\none",
	}
	it.pass("unpack", "validate", "inventory", "bag")
	r, err := bags.Validate(t.Context(), it.bagPath(), bags.ValidateOptions{})
	must(t, err)
	want := []tagfile.Field{
		{Label: "External-Identifier", Value: string(testItem)},
		{Label: "Internal-Sender-Identifier", Value: "Diaries 1871"},
		{Label: "Contact-Name", Value: "C"},
		{Label: "External-Description", Value: "Line one"},
		{Label: "Bag-Group-Identifier", Value: "group"},
		{Label: "Source-Organization", Value: "Parish"},
		{Label: "Contact-Name", Value: "A"},
		{Label: "Contact-Name", Value: "B"},
		{Label: "Bagging-Date", Value: "2026-11-20"},
		{Label: "Payload-Oxum", Value: "6.2"},
		{Label: "Bag-Size", Value: "6 bytes"},
		{Label: "Bag-Software-Agent", Value: "Bagpipe"},
	}
	if !reflect.DeepEqual(r.Info, want) {
		t.Errorf("bag-info\n%q\nwant\n%q", r.Info, want)
	}
}

func TestBagRefusesNamesItCannotList(t *testing.T) {
	it := newItem(t, "drop", map[string]string{"caf\xe9": "x"})
	it.pass("unpack", "inventory")
	_, err := it.run("bag")
	wantFailure(t, err, Content, "caf%E9", string(files.RuleNotUTF8))
}

func TestBagAlgorithms(t *testing.T) {
	it := newItem(t, "drop", map[string]string{"a": "x"})
	it.with = map[string]any{"algorithms": []any{"md5"}}
	it.pass("unpack", "inventory", "bag")
	if _, err := os.Stat(filepath.Join(it.bagPath(), "manifest-md5.txt")); err != nil {
		t.Error(err)
	}
	it.with = map[string]any{"algorithms": []any{"rot13"}}
	_, err := it.run("bag")
	wantFailure(t, err, System, "rot13")
}

func TestNoop(t *testing.T) {
	it := newItem(t, "drop", map[string]string{"a": "x"})
	for _, c := range []struct {
		with    map[string]any
		kind    Kind
		message string
	}{
		{nil, "", ""},
		{map[string]any{"message": "hello", "sleep": "1ms"}, "", "hello"},
		{map[string]any{"fail": "content", "message": "bad scan"}, Content, "bad scan"},
		{map[string]any{"fail": "system"}, System, "asked to fail"},
		{map[string]any{"fail": "often"}, System, "want content or system"},
		{map[string]any{"sleep": "long"}, System, "parameter sleep"},
	} {
		it.with = c.with
		r, err := it.run("noop")
		if c.kind == "" {
			if err != nil || r.Message != c.message {
				t.Errorf("%v: %+v, %v", c.with, r, err)
			}
			continue
		}
		wantFailure(t, err, c.kind, c.message)
	}
}
