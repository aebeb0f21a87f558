package bags

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// TestABagInAFolderOfOnesOwn: it is built under its name, and its tag files are listed by
// what was written, whoever wrote it.
func TestABagInAFolderOfOnesOwn(t *testing.T) {
	own := t.TempDir()
	dest := filepath.Join(own, "bag")
	copied := filepath.Join(t.TempDir(), "copied")
	if err := os.WriteFile(copied, []byte("copied"), 0o644); err != nil {
		t.Fatal(err)
	}
	alone := func() error {
		names, err := os.ReadDir(own)
		if err == nil && (len(names) != 1 || names[0].Name() != "bag") {
			t.Errorf("in the folder: %v", names)
		}
		return err
	}
	_, err := CreatePrivate(t.Context(), CreateOptions{Payload: payloadFolder(t, bag{"a/b": "x", "c": ""}), Dest: dest, TagFiles: []TagFile{
		{Path: "notes/written", Write: func(to io.Writer) error {
			_, err := io.WriteString(to, "first, ")
			if err == nil {
				_, err = io.WriteString(to, "second")
			}
			return errors.Join(err, alone())
		}},
		{Path: "notes/deep/data", Data: []byte("data")},
		{Path: "notes/twice", Data: []byte("the earlier and longer one")},
		{Path: "notes/twice", Data: []byte("the later one")},
		{Path: "copied", Source: copied},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"notes/written": "first, second", "notes/twice": "the later one", "copied": "copied"} {
		if got, err := os.ReadFile(filepath.Join(dest, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	r, err := Validate(t.Context(), dest, ValidateOptions{})
	if err != nil || !r.Valid {
		t.Errorf("%v %+v", err, r.Findings)
	}
	if err := os.WriteFile(filepath.Join(dest, "notes/written"), []byte("first, Second"), 0o644); err != nil {
		t.Fatal(err)
	}
	if r, err := Validate(t.Context(), dest, ValidateOptions{}); err != nil || r.Valid {
		t.Errorf("with another byte in a tag file: %v %+v", err, r)
	}
}
