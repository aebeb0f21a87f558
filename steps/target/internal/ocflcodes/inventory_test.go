package ocflcodes

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzInventory judges whatever stands in an inventory.
func FuzzInventory(f *testing.F) {
	all, err := filepath.Glob("../../../../../shared/fixtures/ocfl/1.1/*/*/inventory.json")
	if err != nil {
		f.Fatal(err)
	}
	for _, at := range all {
		data, err := os.ReadFile(at)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"digestAlgorithm": {}, "head": [], "manifest": {"": [1]}, "versions": {"v1": {"state": []}}, "fixity": {"sha512": {"x": 7}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, found := range Inventory(data, "1.1") {
			if found.Code == "" || found.Text == "" {
				t.Errorf("%+v", found)
			}
		}
	})
}
