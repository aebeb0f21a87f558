package target

import (
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	"bagpipe/bags/files"
	"bagpipe/layout"

	"golang.org/x/sync/errgroup"
)

// Target is a place where bags are deposited. Every method may be called from several
// goroutines, for different items. Beside the errors below they answer ctx's.
type Target interface {
	// Put writes a bag and reads it back. It is idempotent: a bag that is there already is
	// read and answered, and what a dead put left is gone on with. Errors: *Down, *Damage
	// of a copy that stands there, ErrOther.
	Put(ctx context.Context, b Bag) (layout.DepositCopy, error)
	// Check looks at a copy, and answers the files and bytes it saw. Errors: *Down,
	// *Damage, fs.ErrNotExist where nothing of the copy is there.
	Check(ctx context.Context, c layout.DepositCopy, level Level) (files int, bytes int64, err error)
	// Get writes the bag of a copy into to, a folder that is there. Files that an interrupted Get
	// left there are gone on with, those of their whole length kept as they are, and all others
	// removed. Nothing is synced, and the bag not validated. Errors as of Check.
	Get(ctx context.Context, c layout.DepositCopy, to string) error
	// Replace puts a bag in the place of a damaged copy of it, whose bytes are kept aside
	// until the new copy is verified, and removed then. Errors as of Put.
	Replace(ctx context.Context, c layout.DepositCopy, b Bag) (layout.DepositCopy, error)
	// Walk tells of the copies that stand there, item by item, by version and
	// revision, whatever the records say. One of an unknown item is passed over. Errors: *Down, and each's.
	Walk(ctx context.Context, each func(Found) error) error
	// Poor says what the store cannot do, that a person should know.
	Poor() []string
	// Close ends the connections.
	Close() error
}

// Bag is what is deposited.
type Bag struct {
	Item    layout.ItemID
	Version int    // of the item, from 1
	Dir     string // of the bag; its files do not change meanwhile
	Name    string // of its archive, and of the folder in that; "": the item's identifier
	// By, Message and At stand in the version of an OCFL object.
	By, Message string
	At          time.Time
	Progress    func(bytes int64) // counts what was written and read back, called by several goroutines at once; may be nil
	// Record has the copies of the item's versions that are on record there. Of OCFL, whose versions share one
	// object, a put waits where an earlier one, sound by its record, is gone, and a mend keeps what it set aside of others.
	Record map[int]layout.DepositCopy
}

// Level says how close a look is.
type Level string

// The levels of a check.
const (
	Read   Level = "read"   // every byte is read
	Exists Level = "exists" // names and sizes, as the store states them
)

// ErrOther says that something else stands where the bag belongs; nothing was overwritten.
var ErrOther = errors.New("another payload stands in its place; nothing was overwritten")

// Down is a target that cannot be used now: it is away, full, refuses, or is too slow.
type Down struct{ Err error }

func (d *Down) Error() string { return d.Err.Error() }
func (d *Down) Unwrap() error { return d.Err }

// Damage is what is wrong with a copy.
type Damage struct {
	Text   string
	Unread bool // the disk does not give its bytes
}

func (d *Damage) Error() string { return d.Text }

func damage(format string, args ...any) error { return &Damage{Text: fmt.Sprintf(format, args...)} }

// backend is where files are: a tree of names, relative, with slashes.
type backend interface {
	// open reads a file from offset on. fs.ErrNotExist where there is none.
	open(ctx context.Context, name string, offset int64) (reader, error)
	// list gives the files below a folder, their names relative to it; only those directly
	// in it unless deep. None where there is no folder.
	list(ctx context.Context, dir string, deep bool, each func(name string, size int64) error) error
	// survey tells what stands below a folder; nothing where there is none.
	survey(ctx context.Context, dir string) (survey, error)
	// folders gives the names of the folders directly in a folder; none where there is none.
	folders(ctx context.Context, dir string) ([]string, error)
	// write makes a file; what a dead write of it left may be gone on with. Where files
	// cannot be renamed, one that is there is fs.ErrExist.
	write(ctx context.Context, name string, f file) error
	// replace makes a small file, or puts it in the place of another at once, durably.
	replace(ctx context.Context, name string, data []byte) error
	// settle returns when all below a folder, or the file, is durable.
	settle(ctx context.Context, name string) error
	// rename gives a file or folder its name, durably; fs.ErrExist where one has it.
	rename(ctx context.Context, from, to string) error
	// remove removes a file or folder with all in it; none is no error.
	remove(ctx context.Context, name string) error
	// digests has the server digest files below a folder itself, in the order of names, where it
	// does; each is called for each.
	digests(ctx context.Context, dir string, names []string, a files.Algorithm, each func(i int, sum []byte) error) (does bool, err error)
	// version is what the store calls the bytes of a file that stand there now; "": it keeps no
	// older ones.
	version(ctx context.Context, name string) (string, error)
	// poor says what the store cannot do, that a person should know.
	poor() []string
	// traits tells what the backend can do.
	traits() traits
	close() error
}

// survey is what stands below a folder, by names relative to it.
type survey struct {
	files map[string]int64 // with their sizes
	empty []string         // folders with nothing in them
	odd   []string         // links, pipes, devices
}

// traits are what backends differ in.
type traits struct {
	renames   bool
	vouches   bool          // says of what it was sent that it has it, by its digest
	streams   int           // files at once
	retention time.Duration // what is written cannot be deleted for so long
}

// file is what is written.
type file struct {
	size int64
	open func(offset int64) (reader, error)
	tell teller // told of bytes that went
	// vouch, unless nil, is called where the store states that it has just the bytes that it was
	// sent, by a digest that was computed here.
	vouch func()
}

// until is when what is written now may be deleted; zero: at any time.
func (t traits) until(now time.Time) time.Time {
	if t.retention == 0 {
		return time.Time{}
	}
	return now.Add(t.retention)
}

// locking is a backend that lets nobody delete a file until a time.
type locking interface {
	// prolong locks a file until a time, unless it is locked for longer.
	prolong(ctx context.Context, name string, until time.Time) error
	// lockedUntil is until when a file is locked; zero: it is not.
	lockedUntil(ctx context.Context, name string) (time.Time, error)
}

// locker is a backend whose files are to be locked; nil: they are not.
func locker(b backend) locking {
	if l, is := unpaced(b).(locking); is && b.traits().retention > 0 {
		return l
	}
	return nil
}

// prolong locks files that stand there already, as those are that are written from begin on.
func prolong(ctx context.Context, b backend, dir string, names []string, begin time.Time) error {
	l := locker(b)
	if l == nil {
		return nil
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(b.traits().streams)
	for _, name := range names {
		g.Go(func() error { return l.prolong(gctx, path.Join(dir, name), b.traits().until(begin)) })
	}
	return g.Wait()
}

// retentionOf is until when a copy is locked that was found there, by its file that was written first.
func retentionOf(ctx context.Context, b backend, first string) (time.Time, error) {
	if l := locker(b); l != nil {
		return l.lockedUntil(ctx, first)
	}
	return time.Time{}, nil
}

// Found is a copy that stands on a target, by its place alone: nothing of it was read but,
// of OCFL, the inventory.
type Found struct {
	Item     layout.ItemID
	Version  int // of the item
	Revision int
	Copy     layout.DepositCopy // Place, Layout and State
}
