package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"bagpipe/bags/archive"
	"bagpipe/engine/fault"
	"bagpipe/engine/inbox"
	"bagpipe/engine/ledger"
	"bagpipe/engine/recognise"
	"bagpipe/engine/roots"
	"bagpipe/layout"
	"bagpipe/layout/disk"

	"github.com/gofrs/flock"
)

// Options are the modes of a scan.
type Options struct {
	Shallow    bool // folders whose own time is as it was are not listed
	Check      bool // only what is missing is told; nothing is recorded
	Full       bool // all is recognised anew
	AcceptGone bool // what is gone is gone, and the root is the right one
	Told       func(Progress)

	only []string // objects that are looked at, and nothing else; nil: all
}

// Progress is how far a scan is.
type Progress struct {
	Stage   string // list, recognise, register
	Folders int
	Entries int
	Reading *Reading // the largest object that is read now; nil: none is read for long
}

// Reading is an object that is read.
type Reading struct {
	Path string // below the root, percent-encoded
	Size int64  // in bytes, of a file; 0 of a folder
}

// Report is what a scan found.
type Report struct {
	Catalog layout.Name `json:"catalog"`
	Away    string      `json:"away,omitempty"` // why the root is not looked at
	Counts
	Unread   map[string]string `json:"unread,omitempty"`
	Missing  []string          `json:"missing,omitempty"` // of a check; a folder stands for all below it
	Absent   int               `json:"absent,omitempty"`  // of a check, the entries that are missing, each in a folder, too
	Problems map[string]string `json:"problems,omitempty"`
	Elapsed  time.Duration     `json:"elapsed"`
}

// Counts are the figures of a scan.
type Counts struct {
	Folders     int `json:"folders"`
	Entries     int `json:"entries"`
	Recognised  int `json:"recognised"` // entries of which the rules were asked
	New         int `json:"new"`        // items
	Versions    int `json:"versions"`
	Moved       int `json:"moved"`
	Gone        int `json:"gone"`
	Unconfirmed int `json:"unconfirmed"` // entries that are gone if a person says so
	Later       int `json:"later"`       // objects that the next scan looks at again
	Records     int `json:"records"`
	Anew        int `json:"anew"` // items of which the rules say something else now
}

// Trouble reports whether a person should look.
func (r *Report) Trouble() bool {
	return r.Away != "" || r.Unconfirmed > 0 || len(r.Unread)+len(r.Missing)+len(r.Problems) > 0
}

// scan is one scan of one catalog.
type scan struct {
	k      *Keeper
	cat    *roots.Catalog
	o      Options
	book   *recognise.Book
	limits archive.Limits
	stock
	tally
	force force

	home     map[inode]string // folders of the workspace, which may not lie below the root
	old, now tree
	shelves  *recognise.Survey
	passed   func(name string) bool // names that are no objects
	claims   *claims                // of the items that there are; nil: nobody asked them yet
	changes
}

// changes are what a scan has to visit.
type changes struct {
	touched map[string]bool // folders with a change in them, or below
	told    map[string]bool // folders with something in them, or below, that is refused or waits
	open    map[string]bool // folders that are unread or unconfirmed, or one below is
	steady  bool            // all was recognised by the rules in force, and no folder has rules of its own
}

// tally is what a scan tells.
type tally struct {
	report *Report
	asked  atomic.Int64
	mended map[string]bool          // entries of which the records named no item, or a wrong one
	mu     sync.Mutex               // guards faults, and what report says of objects
	faults map[layout.FileError]int // of rule files of folders, for how many entries each
}

// stock is what a scan has to commit.
type stock struct {
	records        []*node
	drop           []*node  // whose records go
	changed, fresh []object // whose items are to be looked at, and made
	making         []*shift // whose items are being made
	crew           crew
	complete       bool // all items of the records are registered
}

// problem notes what a person should know of an entry.
func (s *scan) problem(path, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.report.Problems == nil {
		s.report.Problems = map[string]string{}
	}
	const most = 1000
	if len(s.report.Problems) < most {
		s.report.Problems[layout.EncodePath(path)] = text
	}
}

// Scan brings a catalog up to date.
func (k *Keeper) Scan(ctx context.Context, name layout.Name, o Options) (*Report, error) {
	cat, err := k.Catalog(name)
	if err != nil {
		return nil, err
	}
	if !o.Check {
		if _, err := k.ledger.Seat.Engine(); err != nil {
			return nil, err
		}
	}
	lock, err := k.lock(name)
	if err != nil {
		return nil, err
	}
	defer lock.Unlock()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	s := &scan{k: k, cat: cat, o: o, force: force{name: name, ledger: k.ledger, stop: stop}}
	s.report, s.mended, s.faults = &Report{Catalog: name}, map[string]bool{}, map[layout.FileError]int{}
	began := time.Now()
	if err = s.run(ctx); err != nil && errors.As(context.Cause(ctx), new(*removedError)) {
		err = context.Cause(ctx)
	}
	tellFaults(s)
	s.report.Elapsed = time.Since(began)
	s.report.Recognised = int(s.asked.Load())
	if ctx.Err() != nil || o.Check {
		return s.report, err
	}
	return s.report, errors.Join(err, k.noteFailure(name, err))
}

// lock keeps other scans of a catalog, and its removal, out.
func (k *Keeper) lock(name layout.Name) (*flock.Flock, error) {
	if err := disk.MkdirAll(k.ledger.Path(stateDir), 0o777); err != nil {
		return nil, err
	}
	lock := flock.New(k.ledger.Path(stateDir + "/" + string(name) + ".lock"))
	if got, err := lock.TryLock(); err != nil || !got {
		return nil, errors.Join(err, fault.New(fault.Busy, fmt.Sprintf("catalog %s is being scanned by another process", name)))
	}
	return lock, nil
}

func (s *scan) run(ctx context.Context) (err error) {
	c := s.k.settings.Current()
	s.book, s.limits = c.Book, c.Settings.ArchiveLimits()
	if len(s.book.Broken) > 0 {
		return s.book.Broken[0]
	}
	ignored, err := c.Settings.Drops(s.cat.Collection).Settling().Passed()
	if err != nil {
		return err
	}
	s.passed = func(name string) bool { return ignored(name) || s.book.KeepsOut(name, false) }
	if s.old, s.complete, err = s.k.load(s.cat.Name); err != nil {
		return err
	}
	device := ""
	if device, s.report.Away = s.away(); s.report.Away != "" {
		return nil
	}
	if err := s.k.checkRoot(s.cat); err != nil {
		return err
	}
	if s.home, err = homeOf(s.k.ledger.Root); err != nil {
		return err
	}
	if !s.complete && !s.o.Check {
		if err := mendRecords(ctx, s); err != nil {
			return err
		}
	}
	found, err := s.walkAll(ctx, device)
	if err == nil || errors.Is(err, errMounted) {
		if _, s.report.Away = s.away(); s.report.Away != "" { // since the scan began
			return nil
		}
	}
	if err != nil || s.o.Check {
		return err
	}
	if s.o.only == nil {
		s.k.forget(s.cat.Name)
	}
	if root := s.now[""]; root.device != device {
		root.device, root.changed = device, true
	}
	vanishing{s, map[identity][]vanished{}, map[*node]*node{}}.settle(found)
	rules, err := s.k.rules(s.cat)
	if err != nil {
		return err
	}
	s.touch(s.now, rules)
	s.shelves = survey(s)
	defer s.crew.dismiss()
	s.steady = s.steady && !s.o.Full && s.complete // without a checkpoint it is not known that the last scan ended
	if _, err = s.visit(ctx, "", rules, false); err != nil {
		return err
	}
	tellMended(s)
	if err := s.finish(ctx); err != nil {
		return err
	}
	return s.k.save(s.cat.Name, s.now)
}

// away says why the root is not the one that was catalogued; nothing below it is gone then.
func (s *scan) away() (device, why string) {
	entries, err := os.ReadDir(s.cat.Root)
	if err != nil {
		return "", "its root cannot be read: " + plainText(err)
	}
	if device, err = deviceOf(s.cat.Root); err != nil {
		return "", "its root cannot be read: " + plainText(err)
	}
	root := s.old[""]
	if root == nil || s.o.AcceptGone {
		return device, ""
	}
	if root.device != "" && root.device != device {
		return device, "its root is on another file system than it was: is it mounted?"
	}
	if len(entries) == 0 && slices.ContainsFunc(root.all(), func(e entry) bool { return !e.gone }) {
		return device, "its root is empty, and was not: is it mounted?"
	}
	return device, ""
}

// answerTime is how long a root may take to answer who only asks how its catalog stands.
const answerTime = 3 * time.Second

// awayWithin is away, also where the root does not answer in time, as a mount whose server is gone does not.
func (s *scan) awayWithin(d time.Duration) (device, why string) {
	answers := make(chan [2]string, 1)
	go func() {
		device, why := s.away()
		answers <- [2]string{device, why}
	}()
	select {
	case a := <-answers:
		return a[0], a[1]
	case <-time.After(d):
		return "", "its root does not answer: is it mounted?"
	}
}

// walkAll lists, waits for what is too young, and gives the folders that were looked at. Before
// something is taken for gone, each folder whose time has moved since it was listed is listed
// again: what vanished from one may have come into another that was listed before.
func (s *scan) walkAll(ctx context.Context, device string) ([]*node, error) {
	w := s.walker(device)
	from := s.from()
	for round := 0; ; round++ {
		if err := w.run(ctx, from...); err != nil {
			if home := (*homeError)(nil); errors.As(err, &home) {
				return nil, fault.New(fault.Refused, fmt.Sprintf("the root of catalog %s holds the workspace: %v", s.cat.Name, home))
			}
			return nil, fmt.Errorf("list %s: %w", layout.EncodePath(s.cat.Root), err)
		}
		s.tell("list", len(w.found), w.entries)
		if s.o.Check || len(w.young) == 0 || round == 2 {
			break
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(s.k.Racy + s.k.Racy/40):
		}
		again := s.walker(device)
		again.before = looked{tree{}, w.young}
		for _, n := range w.found {
			again.before.seen[n.path] = n
		}
		w = again
	}
	list := w.found
	if s.now = s.old; slices.ContainsFunc(list, func(n *node) bool { return s.old[n.path] != n }) {
		s.now = maps.Clone(s.old)
		for _, n := range list {
			s.now[n.path] = n
		}
		slices.SortFunc(list, func(a, b *node) int { return cmpPath(a.path, b.path) })
	}
	if s.o.Check {
		s.missing(list)
		return nil, nil
	}
	for path := range w.young { // it goes on changing: the next scan looks at it
		s.now[path].unsure(time.Now(), s.k.Racy, s.cat.Trusting())
	}
	s.report.count(list)
	return list, nil
}

// count notes what was listed, and which folders could not be.
func (r *Report) count(list []*node) {
	r.Folders = len(list)
	for _, n := range list {
		if r.Entries += n.there(); n.state != Unread {
			continue
		}
		if r.Unread == nil {
			r.Unread = map[string]string{}
		}
		r.Unread[cmp.Or(layout.EncodePath(n.path), ".")] = n.why
	}
}

func cmpPath(a, b string) int {
	if a < b {
		return -1
	}
	return b2int(a > b)
}

func b2int(b bool) int { return int(b2i(b)) }

// from is where the walk begins.
func (s *scan) from() []string {
	if s.o.only == nil {
		return []string{""}
	}
	var dirs []string
	for _, path := range s.o.only {
		if s.old[path] == nil { // a file, or a folder that is not known
			path = parentOf(path)
		}
		for s.old[path] == nil && path != "" {
			path = parentOf(path)
		}
		dirs = append(dirs, path)
	}
	return outermost(dirs)
}

// outermost leaves out what lies below another.
func outermost(dirs []string) (out []string) {
	set := map[string]bool{}
	for _, d := range dirs {
		set[d] = true
	}
	for d := range set {
		above := false
		for p := d; p != "" && !above; {
			p = parentOf(p)
			above = set[p]
		}
		if !above {
			out = append(out, d)
		}
	}
	slices.Sort(out)
	return out
}

// walker makes a walk. Where the records may be others than the last scan's it lists all: they may lack what a folder has.
func (s *scan) walker(device string) *walk {
	return &walk{place: place{s.cat.Root, device, s.home}, old: s.old, trusting: s.cat.Trusting(), shallow: s.o.Shallow && s.complete, racy: s.k.Racy,
		listed: func(folders, entries int) { s.tell("list", folders, entries) }}
}

func (s *scan) tell(stage string, folders, entries int) {
	if s.o.Told != nil {
		s.o.Told(Progress{Stage: stage, Folders: folders, Entries: entries})
	}
}

// unsure makes the next scan take what changed just now for changed.
func (n *node) unsure(now time.Time, racy time.Duration, trusting bool) {
	if recent(n.mtime, now, racy) {
		n.mtime = 0
	}
	for i := range n.all() {
		if e := &n.all()[i]; e.recent(now, racy, trusting) {
			if e.ctime = 0; trusting {
				e.mtime = 0
			}
		}
	}
}

// missing fills in what a check tells: of what is not where it was, what is nowhere else.
func (s *scan) missing(found []*node) {
	s.report.count(found)
	vanishing{s, map[identity][]vanished{}, map[*node]*node{}}.settle(found)
	slices.Sort(s.report.Missing)
}

// touch notes the folders in or below which something changed, those that are open, and those that a visit may not leave out.
func (c *changes) touch(now tree, rules string) {
	c.touched, c.told, c.open, c.steady = map[string]bool{}, map[string]bool{}, map[string]bool{}, true
	for _, n := range now {
		switch {
		case n.changed || n.rules == "":
			upTo(c.touched, n.path)
		case n.tells():
			upTo(c.told, n.path)
		}
		if n.isMarked() || n.rules != rules && n.rules != "" {
			c.steady = false
		}
		if n.state != Present && now.stateAbove(n.path) != Gone {
			upTo(c.open, n.path)
		}
	}
}

// upTo notes a folder and those above it.
func upTo(set map[string]bool, path string) {
	for ; !set[path]; path = parentOf(path) {
		set[path] = true
	}
}

// isIdle reports whether a visit of a folder below an entry would find nothing to do and nothing to tell.
func (c *changes) isIdle(path string, e *entry) bool {
	return c.steady && !e.fresh && !e.moved && !c.touched[path] && !c.told[path] && !c.open[path]
}

// rules names the rules in force, and what else decides of an object.
func (k *Keeper) rules(c *roots.Catalog) (string, error) {
	passing := ""
	if ignore := k.settings.Current().Settings.Drops(c.Collection).Settling().Ignore; ignore != nil && !slices.Equal(ignore, inbox.DefaultIgnore()) {
		passing = "-" + strings.TrimPrefix(ledger.DigestOf([]byte(strings.Join(ignore, "\n"))), "sha256:")[:8]
	}
	if c.Trusting() { // the stamps of the items are others by that
		passing += "-trusting"
	}
	v, err := k.ledger.Store.Tip()
	if err != nil {
		return "", err
	}
	entries, err := v.List("")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	for _, e := range entries {
		if e.Name == layout.RulesDir {
			return e.Hash.String()[:16] + passing, nil
		}
	}
	return "none", nil
}
