package finding

// Severity tells what makes a bag invalid from what is worth knowing.
type Severity string

// The severities.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
)

// Code names a kind of finding. The words are stable; doc.go has the table.
type Code string

// The codes.
const (
	NoDeclaration     Code = "no-declaration"
	Declaration       Code = "declaration-syntax"
	DeclarationBOM    Code = "declaration-bom"
	Version           Code = "version"
	Encoding          Code = "encoding"
	BOM               Code = "bom"
	NoPayload         Code = "no-payload"
	NoManifest        Code = "no-manifest"
	Algorithm         Code = "algorithm"
	WeakAlgorithm     Code = "weak-algorithm"
	ManifestSyntax    Code = "manifest-syntax"
	DigestSyntax      Code = "digest-syntax"
	Duplicate         Code = "duplicate"
	OutsidePayload    Code = "outside-payload"
	UnsafePath        Code = "unsafe-path"
	PathForm          Code = "path-form"
	Percent           Code = "percent"
	ListsFolder       Code = "lists-folder"
	ListsPayload      Code = "lists-payload"
	ListsTagManifest  Code = "lists-tag-manifest"
	ManifestUntagged  Code = "manifest-untagged"
	TagUnlisted       Code = "tag-unlisted"
	ManifestsDiffer   Code = "manifests-differ"
	Missing           Code = "missing"
	Unfetched         Code = "unfetched"
	Unlisted          Code = "unlisted"
	Mismatch          Code = "mismatch"
	InfoSyntax        Code = "info-syntax"
	InfoRepeated      Code = "info-repeated"
	OxumSyntax        Code = "oxum-syntax"
	OxumRepeated      Code = "oxum-repeated"
	Oxum              Code = "oxum"
	NoOxum            Code = "no-oxum"
	FetchSyntax       Code = "fetch-syntax"
	FetchPath         Code = "fetch-path"
	FetchUnlisted     Code = "fetch-unlisted"
	Link              Code = "link"
	Special           Code = "special-file"
	Normalisation     Code = "normalisation"
	Collision         Code = "collision"
	WindowsName       Code = "windows-name"
	SystemFile        Code = "system-file"
	NotUTF8           Code = "name-not-utf-8"
	LineEnd           Code = "line-end"
	BagInBag          Code = "bag-in-bag"
	EmptyFolder       Code = "empty-folder"
	Asterisk          Code = "asterisk"
	EmptyPayload      Code = "empty-payload"
	DeclarationSpaces Code = "declaration-spaces"
	Archive           Code = "archive"
	Serialization     Code = "serialization"
	BaseName          Code = "base-name"
	Unfinished        Code = "unfinished"
	Profile           Code = "profile"
	More              Code = "more"
)

// Finding is one thing wrong, or worth knowing, about a bag.
type Finding struct {
	Code     Code     `json:"code"`
	Severity Severity `json:"severity"`
	Path     string   `json:"path,omitempty"`    // percent-encoded
	Line     int      `json:"line,omitempty"`    // in Path, where it is a tag file
	Section  string   `json:"section,omitempty"` // of RFC 8493
	Text     string   `json:"text"`

	// Of a CodeProfile finding: the profile's identifier, and which of its
	// constraints is not met.
	Profile    string `json:"profile,omitempty"`
	Constraint string `json:"constraint,omitempty"`
}
