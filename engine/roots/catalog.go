package roots

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"bagpipe/layout"
)

// Catalog is catalogs/NAME.yaml: a folder whose objects are items and stay where they are.
type Catalog struct {
	Schema     int         `yaml:"schema"`
	Name       layout.Name `yaml:"name"`
	Root       string      `yaml:"root"`
	Collection layout.Name `yaml:"collection"`
	Workflow   string      `yaml:"workflow"` // "": as the rules and the collection say
	Gone       string      `yaml:"gone"`     // the part of the entries that one scan takes for gone; "": 10%
	Trust      []string    `yaml:"trust"`    // size, mtime: where inodes and change times prove nothing

	GonePart float64 `yaml:"-"` // Gone, as a part of 1
}

const (
	schema      = 1
	defaultGone = "10%"
)

// Parse reads and checks catalogs/NAME.yaml; its errors are *layout.FileError.
func Parse(file string, data []byte) (*Catalog, error) {
	y, err := layout.ParseYAML(file, data)
	if err != nil {
		return nil, err
	}
	c := &Catalog{}
	if err := y.Decode(c); err != nil {
		return nil, err
	}
	if c.Schema != schema {
		return nil, y.Errorf("$.schema", "expected schema: %d", schema)
	}
	if _, err := layout.ParseName(string(c.Name)); err != nil {
		return nil, y.Errorf("$.name", "%v", err)
	}
	if want := strings.TrimSuffix(file[strings.LastIndexByte(file, '/')+1:], ".yaml"); want != string(c.Name) {
		return nil, y.Errorf("$.name", "expected the file's name without .yaml, not %q", c.Name)
	}
	if !filepath.IsAbs(c.Root) || filepath.Clean(c.Root) != c.Root || c.Root == "/" {
		return nil, y.Errorf("$.root", "expected the full path of a folder, as /mnt/scans, not %q", c.Root)
	}
	if _, err := layout.ParseName(string(c.Collection)); err != nil {
		return nil, y.Errorf("$.collection", "%v", err)
	}
	if c.Gone == "" {
		c.Gone = defaultGone
	}
	percent, is := strings.CutSuffix(c.Gone, "%")
	if c.GonePart, err = strconv.ParseFloat(percent, 64); err != nil || !is || !(c.GonePart >= 0 && c.GonePart <= 100) {
		return nil, y.Errorf("$.gone", "expected a part such as 10%%, not %q", c.Gone)
	}
	c.GonePart /= 100
	if slices.Sort(c.Trust); len(c.Trust) > 0 && !slices.Equal(c.Trust, []string{"mtime", "size"}) {
		return nil, y.Errorf("$.trust", "expected [size, mtime]")
	}
	return c, nil
}

// Trusting reports whether size and modification time alone are compared.
func (c *Catalog) Trusting() bool { return len(c.Trust) > 0 }
