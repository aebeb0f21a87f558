package layout

import (
	"fmt"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Folders and files of a workspace, relative to it, with forward slashes.
const (
	SettingsFile  = "bagpipe.yaml"
	WorkflowsDir  = "workflows"
	PinnedDir     = "workflows/pinned"
	RulesDir      = "rules"
	QueuesDir     = "queues"
	SchedulesDir  = "schedules"
	SitesDir      = "sites"
	FormatsDir    = "formats"
	SearchesDir   = "searches"
	WordsDir      = "vocabularies"
	PlacesDir     = "places"
	CatalogsDir   = "catalogs"
	FiringsDir    = "schedules/state"
	ItemsDir      = "items"
	BatchesDir    = "batches"
	InboxDir      = "inbox"
	UploadPrefix  = ".uploading-" // begins the name of a folder in an inbox in which a server keeps an upload
	IntakeDir     = "intake"
	RejectedDir   = "rejected"
	RepositoryDir = ".git"
	StateDir      = ".bagpipe"
	SubmittedDir  = StateDir + "/submissions" // what programs submit, until it is taken in
	FetchedDir    = StateDir + "/fetched"     // what readers name by URLs, until it is taken in
	EnginesDir    = ".bagpipe/engines"
	ClaimsDir     = ".bagpipe/claims"
	ScratchDir    = ".bagpipe/scratch"
	ControlsFile  = "controls/steps.json"
	WarmUpDir     = ".bagpipe/warmup"
	IndexDir      = ".bagpipe/index"
	FeedsDir      = ".bagpipe/feeds"
	SearchDir     = ".bagpipe/search"
	DeliveryDir   = ".bagpipe/delivery"
	AccessDir     = "access"
)

// KeptDirs are the folders of a workspace that its engine alone writes to.
func KeptDirs() []string {
	return []string{RepositoryDir, ItemsDir, IntakeDir, RejectedDir, StateDir}
}

// OwnDirs are these and the folders of settings and records, where nothing but they has a place.
func OwnDirs() []string {
	return append(KeptDirs(), WorkflowsDir, RulesDir, QueuesDir, SchedulesDir, SitesDir, FormatsDir, SearchesDir, WordsDir, PlacesDir, CatalogsDir,
		BatchesDir, RetiredDir, AccessDir, path.Dir(ControlsFile))
}

// Files and folders of one item, relative to its folder.
const (
	ManifestJSON  = "manifest.json"
	InventoryJSON = "inventory.json"
	ExecutionJSON = "execution.json"
	DepositsJSON  = "deposits.json"
	SourceDir     = "source"
	SidecarsDir   = "sidecars"
	ContentDir    = "content"
	DerivedDir    = "derived"
	LogsDir       = "logs"
	InputsDir     = "inputs"
	ChildrenDir   = "children"       // of an attempt's scratch folder
	ReadyDir      = "children.ready" // there, too: children are renamed into it while the program runs
	VersionsDir   = "versions"       // the versions before the present one, by their numbers
	VersionJSON   = "version.json"
)

// ItemDir is the folder of an item: items/3/f/a/9/ID.
func ItemDir(id ItemID) string {
	s := string(id)
	return ItemsDir + "/" + s[0:1] + "/" + s[1:2] + "/" + s[2:3] + "/" + s[3:4] + "/" + s
}

// ItemOfPath gives the item a committed path belongs to, and the rest of the
// path within the item's folder.
func ItemOfPath(p string) (id ItemID, rest string, ok bool) {
	const at, end = len(ItemsDir + "/3/f/a/9/"), len(ItemsDir+"/3/f/a/9/") + ItemIDLen
	if len(p) < end || p[:len(ItemsDir)+1] != ItemsDir+"/" {
		return "", "", false
	}
	id, err := ParseItemID(p[at:end])
	if err != nil {
		return "", "", false
	}
	for i := range 4 {
		if digit := len(ItemsDir) + 1 + 2*i; p[digit] != id[i] || p[digit+1] != '/' {
			return "", "", false
		}
	}
	if len(p) == end {
		return id, "", true
	}
	return id, p[end+1:], p[end] == '/'
}

// VersionDir is where an item's folder keeps a version that another has replaced.
func VersionDir(id ItemID, n int) string {
	return ItemDir(id) + "/" + VersionsDir + "/" + strconv.Itoa(n)
}

// PinnedPath is where the definition with this digest (sha256:HEX) is kept.
func PinnedPath(digest string) string {
	return PinnedDir + "/" + strings.TrimPrefix(digest, "sha256:") + ".yaml"
}

// ParseDigest checks sha256:HEX.
func ParseDigest(s string) (string, error) {
	hex, ok := strings.CutPrefix(s, "sha256:")
	if !ok || len(hex) != 64 || !isHex(hex) {
		return "", fmt.Errorf("digest %q: want sha256: and 64 lower-case hexadecimal digits", s)
	}
	return s, nil
}

// StepLog is the path of an attempt's log within the item's folder.
func StepLog(step Name, k AttemptKey) string {
	return LogsDir + "/" + string(step) + "." + k.String() + ".log"
}

// Name is a checked name of a collection, workflow, step or lane.
type Name string

const maxName = 64

// ParseName checks s against the alphabet in the package comment.
func ParseName(s string) (Name, error) {
	if s == "" || len(s) > maxName {
		return "", fmt.Errorf("name %q: want 1 to %d characters", s, maxName)
	}
	for i := range len(s) {
		if !isNameByte(s[i]) || i == 0 && (s[i] == '.' || s[i] == '_' || s[i] == '-') {
			return "", fmt.Errorf("name %q: want letters, digits, '.', '_' or '-', beginning with a letter or digit", s)
		}
	}
	return Name(s), nil
}

func isNameByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-'
}

// RelPath is a checked path below some folder: forward slashes, not absolute,
// clean, no "..", no NUL. It may hold any other bytes.
type RelPath string

// ParseRelPath checks s.
func ParseRelPath(s string) (RelPath, error) {
	switch {
	case s == "" || s == ".":
		return "", fmt.Errorf("path %q: is empty", s)
	case strings.HasPrefix(s, "/"):
		return "", fmt.Errorf("path %q: is absolute", s)
	case strings.IndexByte(s, 0) >= 0:
		return "", fmt.Errorf("path %q: holds a NUL", s)
	case path.Clean(s) != s || s == ".." || strings.HasPrefix(s, "../"):
		return "", fmt.Errorf("path %q: is not a plain path below its folder", s)
	}
	return RelPath(s), nil
}

// EncodePath makes any bytes fit for JSON and for one line of text: bytes that
// are not UTF-8, control characters and '%' become %XX.
func EncodePath(p string) string {
	if plain(p) {
		return p
	}
	var b strings.Builder
	for i := 0; i < len(p); {
		r, n := utf8.DecodeRuneInString(p[i:])
		if r == utf8.RuneError && n <= 1 || r < 0x20 || r >= 0x7f && r < 0xa0 || r == '%' ||
			r == 0x2028 || r == 0x2029 {
			for range max(n, 1) {
				fmt.Fprintf(&b, "%%%02X", p[i])
				i++
			}
			continue
		}
		b.WriteString(p[i : i+n])
		i += n
	}
	return b.String()
}

// plain reports whether a path stands for itself, as most do.
func plain(p string) bool {
	for i := range len(p) {
		if c := p[i]; c < 0x20 || c >= 0x7f || c == '%' {
			return false
		}
	}
	return true
}

// DecodePath reverses EncodePath; a '%' without two hexadecimal digits after it
// is an error.
func DecodePath(s string) (string, error) {
	if strings.IndexByte(s, '%') < 0 {
		return s, nil
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			b = append(b, s[i])
			continue
		}
		if i+2 >= len(s) {
			return "", fmt.Errorf("encoded path %q: '%%' without two hexadecimal digits", s)
		}
		hi, lo := unhex(s[i+1]), unhex(s[i+2])
		if hi < 0 || lo < 0 {
			return "", fmt.Errorf("encoded path %q: '%%' without two hexadecimal digits", s)
		}
		b = append(b, byte(hi<<4|lo))
		i += 2
	}
	return string(b), nil
}

func unhex(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
