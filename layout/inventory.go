package layout

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

const inventorySchema = 1

// Inventory is inventory.json: every payload file of an item's content.
// Files is keyed by the path below content/, percent-encoded (EncodePath).
type Inventory struct {
	Schema int                      `json:"schema"`
	Item   ItemID                   `json:"item"`
	Files  map[string]InventoryFile `json:"files"`
}

// InventoryFile describes one file: bytes, lower-case hexadecimal digests, and
// the MIME type recognised from its first bytes; once identified, its format by PRONOM.
type InventoryFile struct {
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
	SHA512 string `json:"sha512"`
	Type   string `json:"type"`

	PUID    string `json:"puid,omitempty"`    // fmt/353; "" where no signature fits
	Format  string `json:"format,omitempty"`  // its name and version
	Basis   string `json:"basis,omitempty"`   // what of the file fitted
	Warning string `json:"warning,omitempty"` // why the format is in doubt
	Role    string `json:"role,omitempty"`    // once described: main, metadata, view or attached
}

// DecodeInventory reads inventory.json; a newer schema is a *SchemaError.
func DecodeInventory(data []byte) (Inventory, error) {
	var v Inventory
	if err := json.Unmarshal(data, &v); err != nil {
		return v, fmt.Errorf("read %s: %w", InventoryJSON, err)
	}
	if v.Schema > inventorySchema {
		return v, &SchemaError{File: InventoryJSON, Schema: v.Schema, Known: inventorySchema}
	}
	return v, nil
}

// InventoryFiles reads the first files of inventory.json, at most so many; 0: all. It reads no
// more than it gives: they stand in the order of their paths.
func InventoryFiles(data []byte, most int) (map[string]InventoryFile, error) {
	if most == 0 {
		v, err := DecodeInventory(data)
		return v.Files, err
	}
	files := map[string]InventoryFile{}
	d := json.NewDecoder(bytes.NewReader(data))
	depth := 0
	for {
		t, err := d.Token()
		if err == io.EOF {
			return files, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", InventoryJSON, err)
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			depth++
			continue
		case json.Delim('}'), json.Delim(']'):
			depth--
			continue
		}
		if t != "files" || depth != 1 {
			continue
		}
		if t, err = d.Token(); err != nil || t != json.Delim('{') {
			return files, err // null: there are none
		}
		for len(files) < most && d.More() {
			name, err := d.Token()
			if err != nil {
				return nil, fmt.Errorf("read %s: %w", InventoryJSON, err)
			}
			var f InventoryFile
			if err := d.Decode(&f); err != nil {
				return nil, fmt.Errorf("read %s: %w", InventoryJSON, err)
			}
			files[name.(string)] = f
		}
		return files, nil
	}
}

// FileOf reads one file of inventory.json, by its path as it stands there; ok is false where there is
// none. As Encode writes it, nothing before the file is understood: of 100,000 files that takes seconds.
func FileOf(data []byte, path string) (f InventoryFile, ok bool, err error) {
	key, err := EncodeJSON(path)
	if err != nil {
		return f, false, err
	}
	head := append(append([]byte("\n    "), bytes.TrimSpace(key)...), ": {"...)
	if i := bytes.Index(data, head); i >= 0 {
		if err := json.NewDecoder(bytes.NewReader(data[i+len(head)-1:])).Decode(&f); err != nil {
			return f, false, fmt.Errorf("read %s: %w", InventoryJSON, err)
		}
		return f, true, nil
	}
	v, err := DecodeInventory(data) // somebody wrote it in another way
	f, ok = v.Files[path]
	return f, ok, err
}

// Encode writes the inventory.
func (v Inventory) Encode() ([]byte, error) {
	v.Schema = inventorySchema
	out, err := encodeNew(v)
	if err != nil {
		return nil, fmt.Errorf("write %s of %s: %w", InventoryJSON, v.Item, err)
	}
	return out, nil
}

// Bytes is the size of all files together.
func (v Inventory) Bytes() (n int64) {
	for _, f := range v.Files {
		n += f.Size
	}
	return n
}
