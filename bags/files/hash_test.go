package files

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestHashWideEqualsPlain(t *testing.T) {
	big := strings.Repeat("0123456789abcdef", (largeFile+12345)/16)
	dir := t.TempDir()
	for name, text := range map[string]string{"big": big, "small": "x"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tree, err := Scan(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, as := range [][]Algorithm{{SHA512}, {SHA256, SHA512}, {MD5, SHA1, SHA224, SHA256, SHA384, SHA512}} {
		err := Hash(t.Context(), tree, as, HashOptions{}, func(h Hashed) error {
			data := map[string]string{"big": big, "small": "x"}[tree.Files[h.Index].Path]
			for _, a := range as {
				w := a.New()
				w.Write([]byte(data))
				if !bytes.Equal(w.Sum(nil), h.Sums.Of(a)) {
					t.Errorf("%s of %s is wrong", a, tree.Files[h.Index].Path)
				}
			}
			if string(h.Head) != data[:min(len(data), HeadBytes)] || h.Size != int64(len(data)) {
				t.Errorf("head or size of %s is wrong", tree.Files[h.Index].Path)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
