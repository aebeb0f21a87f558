package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"bagpipe/engine/claim"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/mounted"
	"bagpipe/engine/queue"
	"bagpipe/engine/runner"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/steps"
)

// Options are what an Engine needs from outside. Now and Random must be set.
type Options struct {
	// ReadOnly opens a workspace without writing to it: what was edited in place is
	// not taken in, and whatever would change something fails with
	// gitstore.ErrReadOnly.
	ReadOnly bool

	Now    func() time.Time
	Random io.Reader
	Log    *slog.Logger       // nil: silent
	Person gitstore.Signature // who acts, for commits that a person causes
	Robots map[layout.Name]steps.Builtin
	Host   claim.Host
	ID     layout.EngineID // "": drawn from Random
	// Warn is told, once each, what a person should know though the command goes
	// on: a refused setting, a file edited in place. nil: not told.
	Warn func(text string)
}

// Engine is one process at work on a workspace.
type Engine struct {
	root  string
	o     Options
	clock func() time.Time // finer than o.Now, and monotonic: for how long something takes
	id    layout.EngineID
	store *gitstore.Store
	plans planCache

	spares  spareFolders
	records recentRecords
	decoded decodedRecords
	ruled   parsedRules
	shared  sharedTable
	cars    chan struct{} // see carReader
	joined  joined

	noting sync.Mutex // held while the index takes in a move, or is copied; before mu

	seat *claim.Seat // taken at the first act

	mu      sync.Mutex // guards the next four
	derived derived    // what index was derived from
	config  *config
	index   *queue.Index // nil until Load
	ended   func(Ended)  // told of this engine's ended steps while it runs; nil: not

	pool     atomic.Pointer[runner.Pool] // of the run under way; nil: none
	dirty    chan struct{}               // the settings changed at the tip
	syncTurn sync.Mutex                  // held while settings are taken in and read: by one goroutine at a time
	saving   sync.WaitGroup              // checkpoints being written,
	saveTurn sync.Mutex                  // one at a time

	arrivals arrivals
	controls controls
	away     away
	facets   atomic.Pointer[[]string] // the paths whose values the index holds; set when it is begun
	alerts   alerts
	announce announce

	knownTurn sync.Mutex            // held while known is filled
	known     atomic.Pointer[known] // what items are known by; nil until an admission asks
	growing   atomic.Pointer[known] // the same from when its filling began

	space freeSpace

	gate           gate                                                                  // asked before an item is changed
	around         func(layout.ItemID) func(string, layout.Name) (*state.Reason, string) // what an item's batch and children make of its steps
	observers      []func(gitstore.Advance)                                              // told of each move of the branch, in the order of the commits
	onSettings     []func(*config)                                                       // told of settings that came into force
	recoverAttempt func(context.Context, *Attempt, string) error                         // takes a step from an engine that is gone
}

// NotAWorkspaceError is a folder that no workspace was found in or above.
type NotAWorkspaceError struct{ Dir string }

func (e *NotAWorkspaceError) Error() string {
	return fmt.Sprintf("no workspace in %s or above it; is it mounted? Make a new one with: bagpipe init DIR", e.Dir)
}

// Find looks for the workspace from dir upward.
func Find(dir string) (root string, err error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(abs); err != nil || !info.IsDir() {
		return "", fmt.Errorf("%s is not a folder", abs)
	}
	for d := abs; ; d = filepath.Dir(d) {
		if isWorkspace(d) {
			return d, nil
		}
		if d == filepath.Dir(d) {
			return "", &NotAWorkspaceError{Dir: abs}
		}
	}
}

// isWorkspace wants both the repository and a sign of Bagpipe, as a repository
// alone is anybody's; bagpipe.yaml may have been deleted by hand.
func isWorkspace(dir string) bool {
	if info, err := os.Stat(filepath.Join(dir, layout.RepositoryDir)); err != nil || !info.IsDir() {
		return false
	}
	for _, sign := range []string{layout.SettingsFile, layout.InboxDir, layout.ItemsDir} {
		if _, err := os.Stat(filepath.Join(dir, sign)); err == nil {
			return true
		}
	}
	return false
}

// Open opens the workspace at root, takes in settings edited in place, and reads
// the settings in force. Close it.
func Open(ctx context.Context, root string, o Options) (_ *Engine, err error) {
	e, err := newEngine(root, o)
	if err != nil {
		return nil, err
	}
	e.store, err = gitstore.Open(root, e.storeOptions())
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.store.Close())
		}
	}()
	if !o.ReadOnly {
		if err := e.checkMounted(); err != nil {
			return nil, err
		}
	}
	if err := e.openArrivals(); err != nil {
		return nil, err
	}
	if err := e.sync(ctx); err != nil {
		return nil, err
	}
	return e, nil
}

// checkMounted answers a *mounted.Error when the workspace's folders are not there.
func (e *Engine) checkMounted() error {
	v, err := e.store.Tip()
	if err != nil {
		return err
	}
	entries, err := v.List(layout.ItemsDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	names := make([]string, 0, len(entries))
	for _, entry := range entries {
		names = append(names, entry.Name)
	}
	return mounted.Folders(e.root, names)
}

// sync reads the controls in force, then takes in settings edited in place and reads the
// settings in force.
func (e *Engine) sync(ctx context.Context) error {
	v, err := e.store.Tip()
	if err != nil {
		return err
	}
	if err := e.loadControls(ctx, v); err != nil {
		return err
	}
	return e.syncSettings(ctx)
}

// How this program signs its commits.
const (
	committerName  = "Bagpipe"
	committerEmail = "bagpipe@"
)

func newEngine(root string, o Options) (*Engine, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Warn == nil {
		o.Warn = func(string) {}
	}
	o.Random = &lockedReader{r: o.Random}
	e := &Engine{root: root, o: o, id: o.ID, dirty: make(chan struct{}, 1), cars: make(chan struct{}, carsAtOnce)}
	// Records hold milliseconds: with finer times a record just made would differ
	// from the same one read again.
	e.o.Now = func() time.Time { return o.Now().UTC().Truncate(ms) }
	e.clock = o.Now
	e.arrivals.init()
	e.facets.Store(&[]string{})
	if e.id == "" {
		id, err := layout.NewEngineID(o.Random)
		if err != nil {
			return nil, err
		}
		e.id = id
	}
	e.seat = claim.NewSeat(root, e.id, o.Host, e.clock)
	e.gate, e.around, e.recoverAttempt = e, e.aroundOf, e.recover
	e.controls.unread, e.controls.changed = e.markDirty, e.recontrol
	e.onSettings = []func(*config){e.applyLimits}
	e.observers = []func(gitstore.Advance){e.arrived, e.noteControls, e.noteSettings, e.noteItems, e.noteKnown}
	e.space.root, e.space.now, e.space.least = root, e.o.Now, func() uint64 { return e.current().settings.free() }
	return e, nil
}

func (e *Engine) storeOptions() gitstore.Options {
	return gitstore.Options{
		Now:       e.clock,
		Committer: gitstore.Signature{Name: committerName, Email: committerEmail + e.o.Host.Name},
		Log:       e.o.Log,
		ReadOnly:  e.o.ReadOnly,
		Advanced:  e.advanced,
		Patient:   e.stocked,
		Follow: func(path string) bool {
			_, rest, ok := layout.ItemOfPath(path)
			return ok && isRecord(rest) || path == layout.ControlsFile ||
				strings.HasPrefix(path, layout.PinnedDir+"/") || strings.HasPrefix(path, layout.BatchesDir+"/")
		},
		Moved: func(from, to gitstore.Hash) {
			e.o.Warn(fmt.Sprintf("the branch was moved back to %s; it has been moved forward again to %s, as what was acknowledged stays. To take back what was pushed, git revert it in a clone.", from.String()[:12], to.String()[:12]))
		},
		Edited: func(path, kept string) {
			e.o.Warn(fmt.Sprintf("%s was edited in place; it is a copy of the committed state and has been rewritten, your edit is kept as %s. To change an item, edit in a clone and push.", path, kept))
		},
	}
}

// Close gives back what the engine holds; twice is fine.
func (e *Engine) Close() error {
	e.saving.Wait()
	if !e.o.ReadOnly {
		e.saveChecked()
	}
	taken, err := e.seat.Close()
	if taken {
		err = errors.Join(err, e.spares.drop())
		_ = os.Remove(filepath.Join(e.path(layout.ScratchDir), string(e.id))) // left when it is not empty
	}
	return errors.Join(err, e.store.Close())
}

// stocked tells that the workers have enough claimed work at hand: a commit that
// takes a little longer keeps none of them waiting.
func (e *Engine) stocked() bool {
	pool := e.pool.Load()
	return pool != nil && pool.Stocked()
}

// Root is the workspace's folder.
func (e *Engine) Root() string { return e.root }

// ID is this engine's identifier.
func (e *Engine) ID() layout.EngineID { return e.id }

func (e *Engine) path(rel string) string { return filepath.Join(e.root, filepath.FromSlash(rel)) }

// runner names this process in attempts.
func (e *Engine) runner() string { return fmt.Sprintf("%s:%d", e.o.Host.Name, e.o.Host.PID) }

// person is how the acting person stands in records.
func (e *Engine) person() string {
	return oneLine(e.o.Person.Name+" <"+e.o.Person.Email+">", 200)
}

func (e *Engine) intentKey() (layout.IntentKey, error) {
	return layout.NewIntentKey(e.o.Now(), e.o.Random, e.id)
}

// lockedReader lets goroutines share a source of randomness.
type lockedReader struct {
	mu sync.Mutex
	r  io.Reader
}

func (l *lockedReader) Read(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.r.Read(p)
}

// current is the configuration in force.
func (e *Engine) current() *config {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.config
}
