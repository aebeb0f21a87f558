package gitstore

import (
	"cmp"
	"errors"
	"log/slog"
	"time"

	"bagpipe/engine/gitstore/internal/follow"
	"bagpipe/engine/gitstore/internal/odb"
	"bagpipe/engine/gitstore/internal/repo"
	"bagpipe/layout/disk"
)

// Hash names a commit, a tree or a file's bytes in the repository.
type Hash = odb.Hash

// ParseHash reads 40 hexadecimal digits.
func ParseHash(s string) (Hash, error) { return odb.ParseHash(s) }

// Signature is a person or an engine; the store adds the time from its clock.
type Signature = repo.Signature

// Options tell a store about its surroundings. Now is required.
type Options struct {
	FS        disk.FS          // nil: the operating system's
	Now       func() time.Time // the clock of every commit
	Committer Signature        // the engine; zero: "Bagpipe"
	Log       *slog.Logger     // nil: discard

	// Trailer ends every commit's message: a whole line, which joins the last block of
	// the message; "": nothing does.
	Trailer string

	Signing

	// ReadOnly opens without writing: the leftovers of dead processes and the followed
	// files stay as they are, and Commit answers ErrReadOnly.
	ReadOnly bool

	// Clone opens a clone of a workspace, which has a checkout, as ReadOnly does; only that
	// the git program makes the commits.
	Clone bool

	// Advanced is called after the branch moved, with every file that changed, oldest
	// first; one call at a time, in the order of the moves: of this store's own group
	// before its callers are answered, of another writer before the next edit is
	// applied. It must be quick, and must not call the store back except for views.
	Advanced func(Advance)

	// Patient reports whether no caller waits for the edits that come now, so that a
	// small group may be held for a moment until more share its sync. nil: groups are
	// never held.
	Patient func() bool

	// Follow reports whether a committed path is shown as a file in the workspace. nil:
	// no path is.
	Follow func(path string) bool

	// MakeWay words the commit that removes what others committed in the way of a path of a
	// Change: at is a file in the place of a folder above it, or a folder in its own place. nil:
	// such a Change is refused.
	MakeWay func(path, at string) (author Signature, message string)

	// Gone visits paths that once were followed, and may stand in the workspace still where
	// nobody knows what was written there; another goroutine at a time may call visit. nil: none.
	Gone func(v View, visit func(path string) error) error

	// Moved is told after the branch, found moved back to from, was moved forward
	// again to to: from Open's goroutine, or the owner's. nil: logged as a warning.
	Moved func(from, to Hash)

	// Edited is told, from the follower's goroutine, of a followed file that a
	// person edited in place, after it was kept beside as keptAs.
	Edited func(path, keptAs string)
}

// Signing says which commits are signed, and by what.
type Signing struct {
	// Sign gives the SSH signature of a commit: of the last one of each group, or of all
	// where SignAll says so. nil: none is signed.
	Sign    func(commit []byte) (armored string, err error)
	SignAll bool
}

// withDefaults fills in the zero values.
func (o Options) withDefaults() (Options, error) {
	if o.Now == nil {
		return o, errors.New("no clock given")
	}
	if o.FS == nil {
		o.FS = disk.OS{}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Committer = cmp.Or(o.Committer, Signature{Name: "Bagpipe", Email: "bagpipe@localhost"})
	return o, nil
}

// Advance is one move of the branch. A large one arrives in several calls with the same From and
// To: More is set in all but the last, and after an error between those of a foreign one the
// move is told from its beginning.
type Advance struct {
	From, To Hash
	Changes  []FileChange
	More     bool
}

// FileChange is one file that is not as it was. Data is shared: it must not be changed.
// Foreign: by another writer than this store.
type FileChange = follow.Change
