package bags

// Severity tells what makes a bag invalid from what is worth knowing.
type Severity string

// The severities.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
)

// Code names a kind of finding. The words are stable; doc.go has the table.
type Code string

// The codes.
const (
	CodeNoDeclaration     Code = "no-declaration"
	CodeDeclaration       Code = "declaration-syntax"
	CodeDeclarationBOM    Code = "declaration-bom"
	CodeVersion           Code = "version"
	CodeEncoding          Code = "encoding"
	CodeBOM               Code = "bom"
	CodeNoPayload         Code = "no-payload"
	CodeNoManifest        Code = "no-manifest"
	CodeAlgorithm         Code = "algorithm"
	CodeWeakAlgorithm     Code = "weak-algorithm"
	CodeManifestSyntax    Code = "manifest-syntax"
	CodeDigestSyntax      Code = "digest-syntax"
	CodeDuplicate         Code = "duplicate"
	CodeOutsidePayload    Code = "outside-payload"
	CodeUnsafePath        Code = "unsafe-path"
	CodePathForm          Code = "path-form"
	CodePercent           Code = "percent"
	CodeListsFolder       Code = "lists-folder"
	CodeListsPayload      Code = "lists-payload"
	CodeListsTagManifest  Code = "lists-tag-manifest"
	CodeManifestUntagged  Code = "manifest-untagged"
	CodeTagUnlisted       Code = "tag-unlisted"
	CodeManifestsDiffer   Code = "manifests-differ"
	CodeMissing           Code = "missing"
	CodeUnfetched         Code = "unfetched"
	CodeUnlisted          Code = "unlisted"
	CodeMismatch          Code = "mismatch"
	CodeInfoSyntax        Code = "info-syntax"
	CodeInfoRepeated      Code = "info-repeated"
	CodeOxumSyntax        Code = "oxum-syntax"
	CodeOxumRepeated      Code = "oxum-repeated"
	CodeOxum              Code = "oxum"
	CodeNoOxum            Code = "no-oxum"
	CodeFetchSyntax       Code = "fetch-syntax"
	CodeFetchPath         Code = "fetch-path"
	CodeFetchUnlisted     Code = "fetch-unlisted"
	CodeLink              Code = "link"
	CodeSpecial           Code = "special-file"
	CodeNormalisation     Code = "normalisation"
	CodeCollision         Code = "collision"
	CodeWindowsName       Code = "windows-name"
	CodeSystemFile        Code = "system-file"
	CodeNotUTF8           Code = "name-not-utf-8"
	CodeLineEnd           Code = "line-end"
	CodeBagInBag          Code = "bag-in-bag"
	CodeEmptyFolder       Code = "empty-folder"
	CodeAsterisk          Code = "asterisk"
	CodeEmptyPayload      Code = "empty-payload"
	CodeDeclarationSpaces Code = "declaration-spaces"
	CodeArchive           Code = "archive"
	CodeSerialization     Code = "serialization"
	CodeBaseName          Code = "base-name"
	CodeUnfinished        Code = "unfinished"
	CodeProfile           Code = "profile"
	CodeMore              Code = "more"
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
