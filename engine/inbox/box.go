package inbox

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"bagpipe/engine/fault"
	"bagpipe/layout"

	"github.com/rjeczalik/notify"
)

var (
	// ErrGone says that the drop is not there any more: another taker was first,
	// or its owner took it away.
	ErrGone = errors.New("the drop is gone")
	// ErrChanged says that the drop is not what Scan saw; it was left, or put
	// back, and settles anew.
	ErrChanged = errors.New("the drop changed while being taken")
)

const (
	defaultRescan = 10 * time.Second
	emptyFactor   = 10 // an empty drop waits so many times Quiet
)

// Options of a Box. Only Root is required.
type Options struct {
	Settling                          // of collections that are not in Of
	Of       map[layout.Name]Settling // by collection
	Root     string                   // the workspace
	Engine   layout.EngineID          // written into journals; needed to take
	Rescan   time.Duration            // a scan is due at least so often; default 10 s
	Watch    bool                     // use the system's events as hints
	Closed   func(layout.Name) string // why nothing may be added to a batch; empty: it may. nil: always
	Rules    string                   // the name of files that are about the folder they lie in, and no drops; empty: there are none
	// Together tells which of the files in a folder of drops belong together; none of
	// them twice. It opens none. nil: each is a drop of its own.
	Together func(ctx context.Context, collection layout.Name, dir string, names []string) []Set
	// Companions tells whether a file of a name, alone so far, may belong with others that
	// are on their way: renamed into place it waits for the quiet time all the same. nil:
	// every file may.
	Companions func(collection layout.Name, name string) bool
	// TakenAs finds the item that an original which stays was taken in as; changed tells
	// that it is no longer as it was then. nil: it finds none.
	TakenAs func(context.Context, layout.Original) (item layout.ItemID, changed bool, err error)
	Now     func() time.Time
	Random  io.Reader // of identifiers
	Log     *slog.Logger
}

// IsSet tells whether the drop is files that lie side by side.
func (d Drop) IsSet() bool { return len(d.set) > 0 }

// Kind is what a drop is.
type Kind string

// The kinds of drops.
const (
	Folder Kind = "folder"
	File   Kind = "file"
)

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
	Sidecars   []string // files beside it that are about it alone
	Shared     string   // a table beside it that is about several

	// Stays says why the original will stay where it is: it may not be moved, or not
	// removed. Empty: it goes.
	Stays   string
	foreign bool // an entry of it belongs to another account
	byQuiet bool // it settles by quiet alone: no marker, list or rename says that it is whole

	set []member // its files, if it is a set: they lie beside each other, Path is the first, Kind is Folder

	sig        signature
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
}

// Rejected is a settled drop that cannot be admitted. Rule is a short constant
// for programs, Reason a sentence for people.
type Rejected struct {
	Drop
	Rule   string
	Reason string
}

// Box is the inbox of one workspace.
type Box struct {
	opt   Options
	at    func(string) // told of each step of taking a set, by tests
	watch func(path string, c chan<- notify.EventInfo, events ...notify.Event) error
	next  chan time.Duration // from Scan to Run: when the next one is due

	mu     sync.Mutex                // guards the rest
	common *settling                 // of collections that have none of their own
	own    map[layout.Name]*settling // by collection
	seen   map[string]sighting       // by path
	moved  map[string]time.Time      // when a drop was renamed into its place, by path
	listed map[string]time.Time      // when a folder of drops was last listed, by path
	took   time.Duration             // by the last scan
	swept  time.Time                 // when the notes of takings were swept
}

// sighting is a signature and since when this process has seen it unchanged.
type sighting struct {
	sig    signature
	since  time.Time
	last   time.Time // when it was seen last
	lacks  string    // of its lists, when they were read
	looked bool      // they were
	asked  time.Time // when nobody was found to hold it open for writing
}

// New checks the options and fills in what is missing.
func New(opt Options) (*Box, error) {
	root, err := filepath.Abs(opt.Root)
	if opt.Root == "" || err != nil {
		return nil, fmt.Errorf("open inbox: no workspace given")
	}
	opt.Root = root
	if opt.Rescan <= 0 {
		opt.Rescan = defaultRescan
	}
	if opt.Closed == nil {
		opt.Closed = func(layout.Name) string { return "" }
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.Random == nil {
		opt.Random = rand.Reader
	}
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	b := &Box{opt: opt, own: map[layout.Name]*settling{}, at: func(string) {}, watch: notify.Watch, next: make(chan time.Duration, 1),
		seen: map[string]sighting{}, moved: map[string]time.Time{}, listed: map[string]time.Time{}}
	if b.common, err = newSettling(&b.opt.Settling); err != nil {
		return nil, fmt.Errorf("open inbox: %w", err)
	}
	for name, s := range opt.Of {
		if b.own[name], err = newSettling(&s); err != nil {
			return nil, fmt.Errorf("open inbox: collection %s: %w", name, err)
		}
	}
	return b, nil
}

func (b *Box) path(parts ...string) string {
	return filepath.Join(append([]string{b.opt.Root}, parts...)...)
}

// settlingOf gives what is set for a collection.
func (b *Box) settlingOf(c layout.Name) *settling {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.own[c]; s != nil {
		return s
	}
	return b.common
}
