package layout

import (
	"bytes"
	"encoding/json"
	"testing"
)

// One file of an inventory is what reading all of it gives, however it is written.
func TestFileOf(t *testing.T) {
	v := Inventory{Item: "3fa9c0d2e1b7a45", Files: map[string]InventoryFile{}}
	for i, name := range []string{"a", "a/b.txt", "files", "q\"uote", "back\\slash", "<tag>&", "ünder", "sha256", "last%0A"} {
		v.Files[name] = InventoryFile{Size: int64(i), SHA256: name, Type: "text/plain"}
	}
	data, err := v.Encode()
	if err != nil {
		t.Fatal(err)
	}
	var other bytes.Buffer
	if err := json.Compact(&other, data); err != nil {
		t.Fatal(err)
	}
	for _, text := range [][]byte{data, other.Bytes()} {
		for name, want := range v.Files {
			if got, ok, err := FileOf(text, name); err != nil || !ok || got != want {
				t.Errorf("%q: %+v %v %v", name, got, ok, err)
			}
		}
		if _, ok, err := FileOf(text, "none"); ok || err != nil {
			t.Errorf("a file that is not there: %v %v", ok, err)
		}
	}
	if _, _, err := FileOf([]byte("{"), "a"); err == nil {
		t.Error("what is cut off has no error")
	}
}
