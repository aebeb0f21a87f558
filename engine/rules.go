package engine

import (
	"fmt"
	"path"

	"bagpipe/layout"
)

const rulesSchema = 1

// RuleFile is rules/NAME.yaml.
type RuleFile struct {
	Schema int    `yaml:"schema"`
	Name   string `yaml:"name"`
	Rules  []Rule `yaml:"rules"`
}

// Rule says what becomes of the drops that match.
type Rule struct {
	Name     string `yaml:"name"`
	Match    Match  `yaml:"match"`
	Workflow string `yaml:"workflow"`
	Lane     string `yaml:"lane"`
}

// Match holds conditions; all that are given must fit.
type Match struct {
	Collection string `yaml:"collection"`
	Kind       string `yaml:"kind"`
	Name       string `yaml:"name"`
}

// Kinds of drops.
const (
	KindFolder  = "folder"
	KindArchive = "archive"
	KindBag     = "bag"
	KindFile    = "file"
)

// ParseRules reads and checks a rule file; its errors are *layout.FileError.
func ParseRules(file string, data []byte) (*RuleFile, error) {
	y, err := layout.ParseYAML(file, data)
	if err != nil {
		return nil, err
	}
	f := &RuleFile{}
	if err := y.Decode(f); err != nil {
		return nil, err
	}
	if f.Schema != rulesSchema {
		return nil, y.Errorf("$.schema", "expected schema: %d", rulesSchema)
	}
	if _, err := layout.ParseName(f.Name); err != nil {
		return nil, y.Errorf("$.name", "%v", err)
	}
	for i, r := range f.Rules {
		at := fmt.Sprintf("$.rules[%d]", i)
		if _, err := layout.ParseName(r.Name); err != nil {
			return nil, y.Errorf(at+".name", "%v", err)
		}
		switch r.Match.Kind {
		case "", KindFolder, KindArchive, KindBag, KindFile:
		default:
			return nil, y.Errorf(at+".match.kind", "expected folder, archive, bag or file, not %q", r.Match.Kind)
		}
		if _, err := path.Match(r.Match.Name, "x"); err != nil {
			return nil, y.Errorf(at+".match.name", "expected a pattern such as *.zip, not %q", r.Match.Name)
		}
	}
	return f, nil
}
