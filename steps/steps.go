package steps

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"bagpipe/bags/archive"
	"bagpipe/layout"
	"bagpipe/layout/disk"
	"bagpipe/steps/form"
	"bagpipe/steps/target"
)

// Robot does one step of one item; the package comment has the contract.
type Robot interface {
	Run(ctx context.Context, c *Call) (Result, error)
}

// Func is a Robot that needs no state.
type Func func(ctx context.Context, c *Call) (Result, error)

// Run calls f.
func (f Func) Run(ctx context.Context, c *Call) (Result, error) { return f(ctx, c) }

// Call is one attempt at one step of one item.
type Call struct {
	Item       layout.ItemID
	Collection layout.Name
	Label      string
	Workflow   string // numbered: accession.1
	Step       layout.Name
	Attempt    layout.AttemptKey
	With       map[string]any // the step's parameters

	// Quality checks the object as the rules say. nil: there are no rules.
	Quality func(ctx context.Context) ([]Check, error)

	// Tags gives the object's tags by kind, as vocabularies and places say. nil: there are none.
	Tags  func(ctx context.Context) (map[string][]string, error)
	Spent func(cpu time.Duration)  // told of the processor time of the step's program; may be nil
	Idled func(idle time.Duration) // told how long the instance of a program that lives had nothing to do before this call; may be nil

	Children *Telling // how the program tells of children while it runs; nil: it cannot

	Folders
	Records
	Means
}

// Telling is how a program tells of its children while it runs.
type Telling struct {
	Pipe  *os.File      // its file 3, on which it names what is in the folder children
	Ready string        // the folder that it renames children into, absolute
	Group func(pid int) // told of its process group once it has started
}

// Folders are the folders of a call. All paths are absolute.
type Folders struct {
	Dir     string   // the item's folder; read only
	Source  string   // Dir/source, holding the drop under its own name; read only
	Content string   // the object as it stands: Dir/content, or the drop itself while no step has published one; read only
	Place   string   // the object of a catalog, which stays there, is never linked to and never removed; "": it was taken in
	Beside  []string // names of the files beside Place that are the object together with it: Content is a folder with a link to each; none: Content tells
	Scratch string   // empty, writable, on the item's file system, removed after the attempt; see MakeScratch
	Store   string   // the folder deposits go to
}

// Records are the item's records as committed.
type Records struct {
	SourceKind string // manifest's source.kind: folder, archive, bag or file
	Manifest   []byte
	Decoded    *layout.Manifest // what Manifest decodes to, to be read only; nil: the robot decodes it
	Inventory  []byte           // nil before there is one
	Execution  []byte           // with this attempt in progress

	// Plans are the pinned definitions of the item's workflows, by digest, and Premis
	// writes what was done with it as PREMIS; for a robot that Archives, and nil for others.
	Plans  map[string][]byte
	Premis func(to io.Writer) error
}

// Means are the settings and services that a robot works with.
type Means struct {
	// Objects tells which objects lie side by side in a folder, by the rule that
	// recognised the item. nil: there are no rules.
	Objects func(ctx context.Context, dir string) (Parted, error)

	Environment []string // of programs, before the step's own; nil: the engine's

	Limits   archive.Limits                           // for unpacking
	Goals    *Goals                                   // where the collection's bags are deposited; nil: in the store alone
	Target   func(name string) (target.Target, error) // opens one of the settings; it stays whose it is
	Bag      *form.Bag                                // what the collection's bags say besides; nil: nothing
	Profiles []string                                 // files of the BagIt profiles that the collection's bags must satisfy
	Looks
	Log      io.Writer // the attempt's log
	Slog     *slog.Logger
	Now      func() time.Time
	Version  string                  // of this program
	Progress func(done, total int64) // bytes; may be nil

	// Rounds makes durable what a robot writes outside its scratch folder; nil: rounds
	// of its own. Aside calls its argument while other robots work in this one's place;
	// nil: the place is kept.
	Rounds *disk.Rounds
	Aside  func(wait func() error) error
}

// Looks is where robots that look into files find and leave things.
type Looks struct {
	Views string // folder that pictures to look at go to; "": beside the item

	Signatures func() (file string, err error) // of formats; nil or "": those of this program
	LeaveOut   func(path string) bool          // what inside a drop does not belong to its content; nil: nothing
}

// Status is how a step ended well.
type Status string

// A step that was not needed is Skipped, with a message that says why.
const (
	Completed Status = "completed"
	Skipped   Status = "skipped"
)

// Result is what a step did. The zero Result is a plain completion.
type Result struct {
	Status     Status // "" is Completed
	Message    string
	Metadata   map[string]any    // merged into the manifest's metadata
	Inventory  *layout.Inventory // becomes inventory.json
	Outputs    []Output
	Remove     []layout.RelPath // source, content, or below derived/: moved away and deleted, once the outputs are published
	Milestones []layout.Name
	Children   []Child
	Choose     []layout.Name                      // of the steps that the step chooses from, those that are done; nil: it did not choose
	Checks     []Check                            // what was found of the object's quality
	Deposits   map[layout.Name]layout.DepositCopy // verified copies of the item's version, by target
}

// Check is what a robot found of an object's quality: a name of its own, one of
// layout.QualityLevels, one of its results, and why.
type Check struct {
	ID     string `json:"id"`
	Level  string `json:"level"`
	Result string `json:"result"`
	Text   string `json:"text"`
	Rule   string `json:"-"` // the file of rules that asks for it; "": the robot tells it by itself
}

// Output is a file or folder in scratch and the place in the item it becomes.
// What stood there before is replaced as a whole.
type Output struct {
	From layout.RelPath // below Call.Scratch
	To   layout.RelPath // "content", or below "derived/"
}

// Child is a file or folder in scratch that becomes an item. What is empty is
// decided as for a drop in the parent's collection, but for the lane, which is the
// parent's.
type Child struct {
	From       layout.RelPath // below Call.Scratch; its base is the name of the child's source
	Name       string         // among the step's children; any bytes but NUL
	Label      string         // "": Name, percent-encoded
	Collection layout.Name
	Workflow   layout.Name
	Lane       layout.Name
	Metadata   map[string]any
	Above      []string // the folders of the object that it lay in, where they say what it is: the nearest first, the object itself last
}

// Kind says who must act on a failure.
type Kind string

// The kinds of failure.
const (
	Content Kind = "content" // the producer must fix what was dropped
	System  Kind = "system"  // the operator must fix the machine
)

// Failure is an error that says whose it is.
type Failure struct {
	Kind Kind
	Err  error
}

func (f *Failure) Error() string { return f.Err.Error() }
func (f *Failure) Unwrap() error { return f.Err }

// ContentFailure is for what the producer must fix.
func ContentFailure(format string, args ...any) error {
	return &Failure{Kind: Content, Err: fmt.Errorf(format, args...)}
}

// SystemFailure is for what the operator must fix.
func SystemFailure(format string, args ...any) error {
	return &Failure{Kind: System, Err: fmt.Errorf(format, args...)}
}

// KindOf classifies an error: System unless a *Failure says otherwise.
func KindOf(err error) Kind {
	var f *Failure
	if errors.As(err, &f) {
		return f.Kind
	}
	return System
}

// Later asks for another call after a while; it costs no retry.
type Later struct {
	After  time.Duration // 0: the engine chooses
	Reason string
}

func (l *Later) Error() string { return "try later: " + l.Reason }

// Unavailable is the answer of a robot whose program or service is not there. An
// optional step is skipped then; a required one fails, kind System.
type Unavailable struct{ Err error }

func (u *Unavailable) Error() string { return u.Err.Error() }
func (u *Unavailable) Unwrap() error { return u.Err }
