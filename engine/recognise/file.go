package recognise

import (
	where "bagpipe/engine/condition"
	"bagpipe/layout"
)

// File is rules/NAME.yaml; the package comment specifies it.
type File struct {
	Schema      int               `yaml:"schema"`
	Name        string            `yaml:"name"`
	Description string            `yaml:"description"`
	Order       int               `yaml:"order"`
	Namespaces  map[string]string `yaml:"namespaces"`
	Lists       Lists             `yaml:"lists"`
	Keywords    []Keyword         `yaml:"keywords"`
	Rules       []Rule            `yaml:"rules"`
	Quality     []QualityRule     `yaml:"quality"`
	Delivery    []Delivery        `yaml:"delivery"`
	Retention   []Retention       `yaml:"retention"`

	path string
	yaml *layout.YAML
}

// Lists are the white and black lists of names.
type Lists struct {
	Drops  List `yaml:"drops"`  // which drops are taken in at all
	Inside List `yaml:"inside"` // which names in a folder or archive are looked at
}

// List is one white list and one black list, of patterns. An empty white list
// allows everything.
type List struct {
	Allow []string `yaml:"allow"`
	Deny  []string `yaml:"deny"`
}

// Keyword says which rules are tried first in folders of this keyword; "" is every
// folder. Rules are named RULE or FILE/RULE.
type Keyword struct {
	Keyword string   `yaml:"keyword"`
	Files   []string `yaml:"files"`
	Folders []string `yaml:"folders"`
}

// Rule says what becomes of the drops that match.
type Rule struct {
	Name        string `yaml:"name"`
	Description string `yaml:"description"`
	Listed      bool   `yaml:"listed"`
	Asks        `yaml:",inline"`
	Verdict     string           `yaml:"verdict"`
	Type        string           `yaml:"type"`
	Workflow    string           `yaml:"workflow"`
	Collection  string           `yaml:"collection"`
	Lane        string           `yaml:"lane"`
	Label       string           `yaml:"label"`
	Identifiers map[string]Value `yaml:"identifiers"`
	Metadata    map[string]Value `yaml:"metadata"`
	Split       string           `yaml:"split"` // deep: what it takes is no object; they are looked for inside
	Known       string           `yaml:"known"` // what becomes of it when an item has its identifier: reject ("") or version

	file *File
}

// Asks is what a rule asks of a drop.
type Asks struct {
	Match   Match    `yaml:"match"`
	Expect  Match    `yaml:"expect"`
	Program []string `yaml:"program"` // and its arguments: says what it takes the drop for
}

// ID is how a rule is named outside its file.
func (r *Rule) ID() string { return r.file.Name + "/" + r.Name }

// Match holds conditions; all that are given must fit. They are asked in the order
// in which they stand here, so that what costs nothing is asked first.
type Match struct {
	Collection Texts `yaml:"collection"`
	Kind       Texts `yaml:"kind"`
	Named      `yaml:",inline"`
	Extension  Texts   `yaml:"extension"`
	Size       *Range  `yaml:"size"`
	MIME       Texts   `yaml:"mime"`
	Magic      []Magic `yaml:"magic"`
	Inside     `yaml:",inline"`
	XML        []InDocument `yaml:"xml"`
	JSON       []InDocument `yaml:"json"`
	All        []Match      `yaml:"all"`
	Any        []Match      `yaml:"any"`
	Not        *Match       `yaml:"not"`

	everything bool // nothing is asked
}

// Named asks for the candidate's own name.
type Named struct {
	Name   Texts  `yaml:"name"`
	Regexp string `yaml:"regexp"`

	regexp *pattern
}

// Inside asks for the names inside a folder or an archive.
type Inside struct {
	Top   string  `yaml:"top"`
	Find  string  `yaml:"find"`
	Sets  *Sets   `yaml:"sets"`
	Holds Texts   `yaml:"holds"`
	Lacks Texts   `yaml:"lacks"`
	May   Texts   `yaml:"may"`
	Count []Count `yaml:"count"`

	find *pattern
}

// Range bounds a size; zero bounds nothing.
type Range struct {
	Min layout.Size `yaml:"min"`
	Max layout.Size `yaml:"max"`
}

// Magic is what stands at an offset of a file, as hexadecimal digits or as text.
type Magic struct {
	At   int64  `yaml:"at"`
	Hex  string `yaml:"hex"`
	Text string `yaml:"text"`

	bytes []byte
}

// Count bounds how many names inside fit; Max nil bounds nothing above.
type Count struct {
	Name   string `yaml:"name"`
	Regexp string `yaml:"regexp"`
	MIME   Texts  `yaml:"mime"`
	Min    *int   `yaml:"min"`
	Max    *int   `yaml:"max"`

	regexp *pattern
}

// Sets are files inside that belong together: those that fit Main, with those named
// after them.
type Sets struct {
	Main     string `yaml:"main"`
	By       string `yaml:"by"` // files with the same value here are one set; default: each is its own
	Required Texts  `yaml:"required"`
	Optional Texts  `yaml:"optional"`
	Min      *int   `yaml:"min"`
	Max      *int   `yaml:"max"`
	Alone    bool   `yaml:"alone"` // nothing else may be there

	main *pattern
}

// InDocument asks for a value in an XML or JSON file; of a file that was dropped,
// without File, in itself.
type InDocument struct {
	File    string `yaml:"file"`
	Path    string `yaml:"path"`
	Is      Texts  `yaml:"is"`
	Matches string `yaml:"matches"`

	xpath   *xpath
	matches *pattern
}

// Delivery says what goes to a target of the settings.
type Delivery struct {
	To      string `yaml:"to"`
	For     string `yaml:"for"`     // a condition; "": all
	Approve string `yaml:"approve"` // when a person must: a condition, never ("") or always

	Which *where.Where `yaml:"-"` // of For; nil: all
	Asked *where.Where `yaml:"-"` // of Approve, where it is a condition
}

// What approve: may say beside a condition.
const (
	ApproveNever  = "never"
	ApproveAlways = "always"
)
