package inbox

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"bagpipe/engine/inbox/internal/content"
	"bagpipe/layout"
)

// What shows that a drop is whole.
const (
	ByQuiet  = ""       // nothing in it has changed for Quiet
	ByMarker = "marker" // the same, and its marker is there
	ByList   = "list"   // the same, and it holds a list and all that the list names
)

// Settling says when the drops of a collection are whole. The zero value is useful.
type Settling struct {
	Quiet      time.Duration // without change for so long is settled; default 30 s
	Ignore     []string      // glob patterns of unfinished names; nil is DefaultIgnore
	Complete   string        // ByQuiet, ByMarker or ByList
	Markers    []string      // suffixes of markers; nil is DefaultMarkers
	Lists      []string      // glob patterns of the files in a folder that list the others
	Growing    time.Duration // what is on its way for longer is late; default 1 h
	Apart      bool          // files that belong together are drops of their own all the same
	Batches    bool          // each folder in the collection's is a batch of drops
	Sidecars   bool          // NAME.metadata.json, NAME.metadata.csv and metadata.csv are about the drops beside them
	Listed     bool          // of those without settings of their own: their folders are no collections
	BatchQuiet time.Duration // a batch's folder from which nothing has come for so long is closed; 0: never
}

const (
	defaultQuiet   = 30 * time.Second
	defaultGrowing = time.Hour
)

// DefaultIgnore gives the patterns used when Settling.Ignore is nil: dotfiles, and
// the names under which common programs write what is not finished.
func DefaultIgnore() []string {
	return []string{".*", "*.part", "*.tmp", "*.crdownload", "*.filepart", "*~"}
}

// SystemFiles gives the names of what systems leave beside people's files.
func SystemFiles() []string {
	return []string{".DS_Store", "._*", "[Tt]humbs.db", "[Ee]hthumbs.db", "[Dd]esktop.ini"}
}

// Passed tells the names that are no objects where these stay in their place: those that an Ignore pattern keeps from
// being taken, and SystemFiles.
func (s Settling) Passed() (func(name string) bool, error) {
	ignore := s.Ignore
	if ignore == nil {
		ignore = DefaultIgnore()
	}
	p, err := content.Compile(slices.Concat(ignore, SystemFiles()))
	return p.Match, err
}

// DefaultMarkers gives the suffixes used when Settling.Markers is nil.
func DefaultMarkers() []string { return []string{".ready", ".done"} }

// DefaultLists gives the patterns used when drops settle by lists and none is
// named: lists of names, and of digests as sha256sum and its like write them.
func DefaultLists() []string {
	return []string{"manifest.txt", "manifest-*.txt", "*.sha256", "*.sha512", "*.sha1", "*.md5"}
}

// settling is a Settling with its patterns compiled.
type settling struct {
	*Settling
	ignore content.Patterns // names of drops that wait
	inside content.Patterns // names that make the drop wait which they lie in
	lists  content.Patterns
}

// newSettling fills in what is missing in s, and compiles it.
func newSettling(s *Settling) (c *settling, err error) {
	if s.Ignore == nil {
		s.Ignore = DefaultIgnore()
	}
	if s.Markers == nil {
		s.Markers = DefaultMarkers()
	}
	if s.Lists == nil && s.Complete == ByList {
		s.Lists = DefaultLists()
	}
	s.Quiet = s.QuietTime()
	if s.Growing <= 0 {
		s.Growing = defaultGrowing
	}
	if s.Complete != ByQuiet && s.Complete != ByMarker && s.Complete != ByList {
		return nil, fmt.Errorf("complete by %q is not known", s.Complete)
	}
	for _, m := range s.Markers {
		if err := CheckMarker(m); err != nil {
			return nil, err
		}
	}
	c = &settling{Settling: s}
	if c.ignore, err = content.Compile(s.Ignore); err != nil {
		return nil, err
	}
	if c.inside, err = content.Compile(content.Inner(s.Ignore)); err != nil {
		return nil, err
	}
	c.lists, err = content.Compile(s.Lists)
	return c, err
}

// CheckMarker tells whether a marker's suffix can be one.
func CheckMarker(suffix string) error {
	if len(suffix) < 2 || suffix != filepath.Base(suffix) {
		return fmt.Errorf("marker %q: expected what is put behind a drop's name, as in .ready", suffix)
	}
	return nil
}

// marked gives the name that a marker of this name would mark; empty: it is none.
func (s *settling) marked(name string) string {
	for _, suffix := range s.Markers {
		if base, ok := strings.CutSuffix(name, suffix); ok && base != "" {
			return base
		}
	}
	return ""
}

// markersOf words which markers a drop of this name may have.
func (s *settling) markersOf(name string) string {
	names := make([]string, len(s.Markers))
	for i, suffix := range s.Markers {
		names[i] = name + suffix
	}
	return strings.Join(names, " or ")
}

// QuietTime is Quiet, or what stands for it.
func (s Settling) QuietTime() time.Duration {
	if s.Quiet <= 0 {
		return defaultQuiet
	}
	return s.Quiet
}

// Unfinished tells whether the name of a drop keeps it from ever being taken in.
func (s Settling) Unfinished(name string) bool {
	c, err := newSettling(&s)
	return err == nil && c.ignore.Match(name)
}

// inForce are the settings that scans and takings go by.
type inForce struct {
	mu     sync.Mutex                // guards the rest
	common *settling                 // of collections that have none of their own
	own    map[layout.Name]*settling // by collection
}

// settlingOf gives what is set for a collection.
func (f *inForce) settlingOf(c layout.Name) *settling {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := f.own[c]; s != nil {
		return s
	}
	return f.common
}

// unlisted tells whether a folder of inbox/ is no collection as nobody added it.
func (f *inForce) unlisted(c layout.Name) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.common.Listed && f.own[c] == nil
}

// change checks and compiles what is to be in force from now on.
func (f *inForce) change(common Settling, of map[layout.Name]Settling) error {
	c, err := newSettling(&common)
	if err != nil {
		return err
	}
	own := map[layout.Name]*settling{}
	for name, s := range of {
		if own[name], err = newSettling(&s); err != nil {
			return fmt.Errorf("collection %s: %w", name, err)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.common, f.own = c, own
	return nil
}
