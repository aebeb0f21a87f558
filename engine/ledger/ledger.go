package ledger

import (
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"bagpipe/engine/claim"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// Options are what every room knows of the process it works in.
type Options struct {
	Root     string // the workspace's folder
	ID       layout.EngineID
	Host     claim.Host
	Now      func() time.Time // UTC in whole milliseconds, as records hold them
	Clock    func() time.Time // finer, and monotonic: for how long something takes
	Random   io.Reader        // shared by goroutines
	Log      *slog.Logger
	Warn     func(text string)  // told, once each, what a person should know though the command goes on
	Version  string             // of this program; empty: attempts name none
	Person   gitstore.Signature // who acts, for commits that a person causes
	ReadOnly bool
	Clone    bool                                            // of a workspace: read-only, but for what git commits there
	Sign     func(commit []byte) (armored string, err error) // nil: no commit is signed
	SignAll  bool                                            // not the last of each group alone
	Site     state.Site
}

// Ledger reads items at a commit and makes transitions of them durable.
type Ledger struct {
	Options
	Seat  *claim.Seat
	Store *gitstore.Store

	runner    string
	gate      Gate
	around    Around
	observers []Observer

	plans   planCache
	mark    atomic.Pointer[layout.Mark] // nil until it is asked for
	Latest  recentRecords
	Decoded decodedRecords
}

// Observer takes in one move of the branch. The calls come in the order of the commits,
// one at a time, before the commit is acknowledged. An observer must not commit, nor wait
// for a commit; it reports its own errors.
type Observer func(gitstore.Advance)

// Around gives, for an item, the function that tells of a step why other items of its
// batch or family keep it from starting, or why they make it unneeded. It gives nil where
// no index is loaded. It is called within an edit, and must not commit.
type Around func(layout.ItemID) func(workflow string, step layout.Name) (*state.Reason, string)

// New makes a ledger without a store; Open opens one.
func New(o Options) *Ledger {
	o.Random = &lockedReader{r: o.Random}
	return &Ledger{Options: o, runner: o.Site.Runner(o.Host.Name + ":" + strconv.Itoa(o.Host.PID)), Seat: claim.NewSeat(o.Root, o.ID, o.Host, o.Clock)}
}

// Connect names who is asked before a change, who knows the items around one, and who is
// told of moves of the branch. It is called before Open.
func (l *Ledger) Connect(gate Gate, around Around, observers ...Observer) {
	l.gate, l.around, l.observers = gate, around, observers
}

// Open opens the store of the workspace. patient reports whether a commit that takes a
// little longer keeps no worker waiting.
func (l *Ledger) Open(patient func() bool) (err error) {
	l.Store, err = gitstore.Open(l.Root, l.StoreOptions(patient))
	return err
}

// StoreOptions say how the store of a workspace is opened, or made.
func (l *Ledger) StoreOptions(patient func() bool) gitstore.Options {
	return gitstore.Options{
		Trailer:   siteTrailer(l.Site),
		Now:       l.Clock,
		Committer: gitstore.Signature{Name: CommitterName, Email: CommitterEmail + l.Host.Name},
		Log:       l.Log,
		ReadOnly:  l.ReadOnly,
		Clone:     l.Clone,
		Signing:   gitstore.Signing{Sign: l.Sign, SignAll: l.SignAll},
		Advanced:  l.advanced,
		Patient:   patient,
		Gone:      retiredCopies,
		Follow: func(path string) bool {
			_, rest, ok := layout.ItemOfPath(path)
			return ok && isShown(rest) || path == layout.ControlsFile ||
				strings.HasPrefix(path, layout.PinnedDir+"/") || strings.HasPrefix(path, layout.BatchesDir+"/") || strings.HasPrefix(path, layout.FiringsDir+"/")
		},
		MakeWay: func(path, at string) (gitstore.Signature, string) {
			l.Warn(fmt.Sprintf("%s was committed by somebody in the way of %s; it is removed, and stays in the history", Printable(at), path))
			who := l.ByEngine()
			return who.Author, Message("answer: removed "+Printable(at)+", which was in the way of "+path, "", []Trailer{{"Bagpipe-Agent", who.Agent}})
		},
		Moved: func(from, to gitstore.Hash) {
			l.Warn(fmt.Sprintf("the branch was moved back to %s; it has been moved forward again to %s, as what was acknowledged stays. To take back what was pushed, revert it in a clone and push.", from.String()[:12], to.String()[:12]))
		},
		Edited: func(path, kept string) {
			l.Warn(fmt.Sprintf("%s was edited in place; it is a copy of the committed state and has been rewritten, your edit is kept as %s. To change an item, edit in a clone and push.", path, kept))
		},
	}
}

// Path is a path of the workspace on disk.
func (l *Ledger) Path(rel string) string { return filepath.Join(l.Root, filepath.FromSlash(rel)) }

// PersonActor is a person as the cause of a transition.
func PersonActor(p gitstore.Signature) Actor {
	return Actor{Author: p, Agent: OneLine(p.Name+" <"+p.Email+">", 200)}
}

// Sign adds the trailer of the actor's request, if there is one, to a message.
func (a Actor) Sign(message string) string {
	if a.Request == "" {
		return message
	}
	return message + RequestTrailer + ": " + a.Request + "\n"
}

// RequestTrailer names the call that a commit answers.
const RequestTrailer = "Bagpipe-Request"

// ByPerson is the person whom the options name.
func (l *Ledger) ByPerson() Actor { return PersonActor(l.Person) }
