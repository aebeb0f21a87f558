package inbox

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"bagpipe/layout"

	"github.com/rjeczalik/notify"
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

// Box is the inbox of one workspace: it scans, and takes.
type Box struct {
	*taker
	*observed
	opt   Options
	watch func(path string, c chan<- notify.EventInfo, events ...notify.Event) error
	next  chan time.Duration // from Scan to Run: when the next one is due

	mu    sync.Mutex    // guards the rest
	took  time.Duration // by the last scan
	swept time.Time     // when the notes of takings were swept
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
	set := &inForce{}
	if err := set.change(opt.Settling, opt.Of); err != nil {
		return nil, fmt.Errorf("open inbox: %w", err)
	}
	w := workspace{root}
	return &Box{opt: opt, watch: notify.Watch, next: make(chan time.Duration, 1),
		taker: &taker{workspace: w, notes: notes{w}, versions: versions{w, opt.Now}, rejects: rejects{w, opt.Now}, inForce: set,
			engine: opt.Engine, now: opt.Now, random: opt.Random, at: func(string) {}},
		observed: &observed{now: opt.Now, seen: map[string]sighting{}, moved: map[string]time.Time{}, listed: map[string]time.Time{}}}, nil
}

// Resettle has the next scan go by other settings. What has been observed stays, but for
// when folders were listed: what was passed over by its name is not new by now.
func (b *Box) Resettle(common Settling, of map[layout.Name]Settling) error {
	if err := b.change(common, of); err != nil {
		return fmt.Errorf("set inbox: %w", err)
	}
	b.observed.mu.Lock()
	defer b.observed.mu.Unlock()
	clear(b.listed)
	return nil
}
