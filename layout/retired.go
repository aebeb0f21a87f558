package layout

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
)

// RetiredDir holds where the records of retired items last stood, fanned out as items/ is.
const RetiredDir = "retired"

const retiredSchema = 1

// RetiredPath is the file that has the item's line, if the item is retired: retired/3/f/a/9.json.
func RetiredPath(id ItemID) string {
	s := string(id)
	return RetiredDir + "/" + s[0:1] + "/" + s[1:2] + "/" + s[2:3] + "/" + s[3:4] + ".json"
}

// IsRetiredPath reports whether a committed path is that of such a file.
func IsRetiredPath(p string) bool { return strings.HasPrefix(p, RetiredDir+"/") }

// Retired is retired/3/f/a/9.json: the retired items whose identifiers begin with these digits.
type Retired struct {
	Schema int                 `json:"schema"`
	Items  map[ItemID]Standing `json:"items"`
}

// Standing is where the records of a retired item last stood. It is one text in JSON:
// COMMIT COLLECTION/LABEL.
type Standing struct {
	Commit     string
	Collection Name
	Label      string
}

// MarshalText writes the text.
func (s Standing) MarshalText() ([]byte, error) {
	return []byte(s.Commit + " " + string(s.Collection) + "/" + s.Label), nil
}

// UnmarshalText reads the text.
func (s *Standing) UnmarshalText(text []byte) error {
	commit, named, _ := strings.Cut(string(text), " ")
	collection, label, _ := strings.Cut(named, "/")
	*s = Standing{Commit: commit, Collection: Name(collection), Label: label}
	return nil
}

// DecodeRetired reads a file of RetiredDir; no bytes are a file of no item. A line of what is no
// item's identifier is passed over. A newer schema is a *SchemaError. Items is never nil.
func DecodeRetired(data []byte) (Retired, error) {
	r := Retired{Items: map[ItemID]Standing{}}
	if len(data) == 0 {
		return r, nil
	}
	if err := json.Unmarshal(data, &r); err != nil {
		r.Items = map[ItemID]Standing{}
		if r.Schema > retiredSchema { // of another shape
			return r, &SchemaError{File: RetiredDir, Schema: r.Schema, Known: retiredSchema}
		}
		return r, fmt.Errorf("read %s: %w", RetiredDir, err)
	}
	if r.Items == nil { // null
		r.Items = map[ItemID]Standing{}
	}
	maps.DeleteFunc(r.Items, func(id ItemID, _ Standing) bool {
		_, err := ParseItemID(string(id))
		return err != nil
	})
	if r.Schema > retiredSchema {
		return r, &SchemaError{File: RetiredDir, Schema: r.Schema, Known: retiredSchema}
	}
	return r, nil
}

// Encode writes r; nil: no item is left in it.
func (r Retired) Encode() ([]byte, error) {
	if len(r.Items) == 0 {
		return nil, nil
	}
	r.Schema = retiredSchema
	return EncodeJSON(r)
}
