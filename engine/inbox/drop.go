package inbox

import (
	"context"
	"path/filepath"
	"time"

	"bagpipe/engine/fault"
	"bagpipe/engine/inbox/internal/content"
	"bagpipe/layout"
)

// IsSet tells whether the drop is files that lie side by side.
func (d Drop) IsSet() bool { return len(d.set) > 0 }

// Drop is one folder or file that lies in a collection's folder.
type Drop struct {
	Collection layout.Name
	Name       string // as dropped, any bytes
	Path       string
	Kind       Kind
	Files      int // regular files, itself included
	Bytes      int64
	Since      time.Time // of the last change seen
	Marker     string    // the path of the marker beside it; empty: none
	Batch      layout.Name
	Companions

	// Stays says why the original will stay where it is: it may not be moved, or not
	// removed. Empty: it goes.
	Stays string
	seen
}

// Companions are files beside a drop that are about it.
type Companions struct {
	Sidecars []string // about it alone; with the item from Done on
	Shared   string   // a table that is about several drops
}

// seen is what a scan saw of a drop, by which its taker knows it.
type seen struct {
	foreign    bool     // an entry of it belongs to another account
	byQuiet    bool     // it settles by quiet alone: no marker, list or rename says that it is whole
	joins      bool     // others can belong to the same drop: it is a set, or a file of one
	set        []member // its files, if it is a set: they lie beside each other, Path is the first, Kind is Folder
	sig        content.Signature
	markerSeen string // which file, in which state, the marker was
}

// Waiting is a drop, or something else in the inbox, that is not to be taken
// yet.
type Waiting struct {
	Drop
	Reason   string
	Remedies []fault.Remedy
	Until    time.Time // when it can settle at the earliest; zero: not by waiting
	Late     bool      // it has been on its way for longer than Growing
	Taken    bool      // it was taken in before, and its original stays
	Barred   bool      // a person must do something, as Reason says
	Held     bool      // it is whole, and something else is in its way
	Crowded  bool      // it waits for more free space than there is
}

// Rejected is a settled drop that cannot be admitted. Rule is a short constant
// for programs, Reason a sentence for people.
type Rejected struct {
	Drop
	Rule   string
	Reason string
}

// Set is files of one folder of drops that belong together.
type Set struct {
	Name  string   // of the drop that they are
	Files []string // names; what it is known by comes first
	Lacks string   // what of it is missing; "": nothing, and it is one drop
}

// member is one file of a set that is to be taken.
type member struct {
	name string
	sig  content.Signature
}

// members are the files of a set, or the drop itself.
func (d Drop) members() []member {
	if d.IsSet() {
		return d.set
	}
	return []member{{filepath.Base(d.Path), d.sig}}
}

// within names a file of the member.
func (m member) within(rel string) string { return filepath.Join(m.name, rel) }

// Ticket is what its giver wants of a drop.
type Ticket struct {
	Collection layout.Name   `json:"-"`                // of Accept; Take goes by the drop's folder
	Chosen     bool          `json:"chosen,omitempty"` // the collection was asked for by name: no rule gives another
	Workflow   layout.Name   `json:"workflow,omitempty"`
	Lane       layout.Name   `json:"lane,omitempty"`
	Label      string        `json:"label,omitempty"`
	Batch      string        `json:"batch,omitempty"`
	By         string        `json:"by,omitempty"`
	Move       bool          `json:"-"`                   // Accept: move instead of copying
	Said       *Said         `json:"said,omitempty"`      // by who handed it in; nil: nothing
	VersionOf  layout.ItemID `json:"versionOf,omitempty"` // that a person makes it a version of; "": as the rules say
}

// Said is what a drop is known by, and what is known of it, before it is looked at.
type Said struct {
	Identifiers map[string]string `json:"identifiers,omitempty"`
	Metadata    map[string]any    `json:"metadata,omitempty"`
}

// Taken is a drop in the intake, or promoted to its item's folder.
type Taken struct {
	ID         layout.ItemID
	Collection layout.Name
	Name       string // as dropped, any bytes
	Kind       Kind
	Files      int
	Bytes      int64
	Ticket     Ticket
	At         time.Time
	Origin     string // where it was dropped
	Path       string // where it is now
	Promoted   bool

	Companions
	Original *layout.Original // stays where it was dropped: it may not be removed

	Successor
	leftBehind
}

// Successor is the version that a drop is to be, or was.
type Successor struct {
	Item    layout.ItemID // "": the drop is an item of its own
	Version int
}

// leftBehind is what is left where a drop was until Done.
type leftBehind struct {
	aside      string // its original; empty: none
	marker     string
	markerSeen string
	carsSeen   []string // which files the side-cars were, in which state
	set        []string // the files, if it was a set; Origin is the first
}

// home is the item whose folder the drop goes to.
func (t Taken) home() layout.ItemID {
	if t.Item != "" {
		return t.Item
	}
	return t.ID
}

// What a drop is made of, as callers see it.
type (
	Kind     = content.Kind
	Sum      = content.Sum
	Stamp    = content.Stamp
	BadError = content.BadError
)

// The kinds of drops.
const (
	Folder = content.Folder
	File   = content.File
)

// RuleUnreadable is broken by what may not be read.
const RuleUnreadable = content.RuleUnreadable

var (
	ErrGone    = content.ErrGone    // the drop is not there any more
	ErrChanged = content.ErrChanged // the drop is not what Scan saw; it settles anew
)

// Digest reads the file or folder at path, several files at once.
func Digest(ctx context.Context, path string) (Sum, error) { return content.Digest(ctx, path) }

// DigestFiles is Digest of a folder that would hold some of the files of dir alone.
func DigestFiles(ctx context.Context, dir string, names []string) (Sum, error) {
	return content.DigestFiles(ctx, dir, names)
}

// SumOf is what Digest gives of a folder with the files of an inventory.
func SumOf(v *layout.Inventory) (Sum, error) { return content.SumOf(v) }

// StampOf stamps a folder; it reports false where the stamp proves nothing.
func StampOf(ctx context.Context, dir string, now time.Time) (Stamp, bool, error) {
	return content.StampOf(ctx, dir, now)
}
