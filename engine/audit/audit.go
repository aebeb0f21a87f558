package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"bagpipe/engine/fault"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/guard"
	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// What a finding is about.
const (
	Object     = "object"     // the bytes of an object
	Event      = "event"      // a commit by a Bagpipe that no event explains
	Words      = "words"      // a commit's subject or trailers
	Join       = "join"       // a commit that is to join two, and does not
	Breach     = "breach"     // what somebody altered, and nothing answered
	Definition = "definition" // a pinned definition that its digest does not fit
	Inventory  = "inventory"  // an inventory that its digest does not fit
	Twice      = "twice"      // a step that was completed twice
	Payload    = "payload"    // bytes that are not what the records say
	Signature  = "signature"  // an anchor that nobody vouches for, or of another history
)

// Finding is one thing that is not as it should be.
type Finding struct {
	Commit string        `json:"commit,omitempty"`
	Item   layout.ItemID `json:"item,omitempty"`
	Kind   string        `json:"kind"`
	Text   string        `json:"text"`
}

// Report says what was gone through.
type Report struct {
	Since    string `json:"since,omitempty"`
	Tip      string `json:"tip"`
	Commits  int    `json:"commits"`
	Events   int    `json:"events"`   // made again
	Joins    int    `json:"joins"`    // made again
	ByHand   int    `json:"byHand"`   // commits of others to records
	Answers  int    `json:"answers"`  // commits that answer those
	Answered int    `json:"answered"` // unlawful changes that were
	Signed   int    `json:"signed"`   // commits
	Anchors  int    `json:"anchors"`
	Findings int    `json:"findings"`
}

// Auditor goes through a history.
type Auditor struct {
	ledger *ledger.Ledger
	guard  *guard.Guard
	tell   func(Finding)
	report Report
	sums   map[gitstore.Hash]string // of folders, as this audit reckoned them

	doubted map[layout.ItemID]bool // see twice
	listed  []gitstore.Hash        // the commits that Git says there are, sorted; nil: some before them are not looked at
}

// New gives an auditor for a workspace that is open, for reading at least.
func New(l *ledger.Ledger, g *guard.Guard) *Auditor { return &Auditor{ledger: l, guard: g} }

// Options say what is gone through.
type Options struct {
	Since   gitstore.Hash // only commits that do not lead to this one; zero: all
	Signers string        // a file of those whose signatures count; "": the committed one
	Root    string        // the fingerprint of the key that signed the first list; "": not asked
}

// Run goes through the commits that lead to the tip, and tells the findings in their order;
// last what anchors say.
func (a *Auditor) Run(ctx context.Context, o Options, tell func(Finding)) (Report, error) {
	since := o.Since
	v, err := a.ledger.Store.Tip()
	if err != nil {
		return Report{}, err
	}
	a.report = Report{Tip: v.Commit().String()}
	a.tell = func(f Finding) { a.report.Findings++; tell(f) }
	if !since.IsZero() {
		a.report.Since = since.String()
	}
	commits, found, err := a.replayAll(ctx, v.Commit(), since)
	a.report.Commits = len(commits)
	if fault.Is(err, fault.Refused) { // the clone is shallow
		return a.report, err
	}
	if err != nil {
		return a.report, errors.Join(a.damaged(ctx, v.Commit(), since, err), err)
	}
	if o.Root != "" {
		if err := a.root(commits, found, o.Root); err != nil {
			return a.report, err
		}
	}
	if err := a.review(ctx, since, commits, found); err != nil {
		return a.report, err
	}
	if err := a.twice(ctx, v); err != nil {
		return a.report, err
	}
	return a.report, a.anchors(ctx, v, o.Signers)
}

// Condemned is what an audit finds for good in some commits, each by itself: what would be told of them
// whatever came after them. What changed records otherwise is guard's to say, and to answer.
func (a *Auditor) Condemned(ctx context.Context, commits []gitstore.Hash) (found []Finding, err error) {
	reading := gitstore.NewScanning(a.ledger.Store, false)
	defer func() { err = errors.Join(err, reading.Close()) }()
	read := newReader(reading)
	for i, h := range commits {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		r, err := a.commit(ctx, read, commits, i)
		if err != nil {
			return nil, fmt.Errorf("audit commit %s: %w", h, err)
		}
		found = append(found, r.told()...)
	}
	return found, nil
}

// result is what one commit came to.
type result struct {
	kind     byte
	list     bool // it changes who signs
	signed   bool
	findings *[]Finding // nil: none
}

func (r result) told() []Finding {
	if r.findings == nil {
		return nil
	}
	return *r.findings
}

// What a commit was found to be.
const (
	other   = byte(iota) // it changes no record
	event                // an event, or what claims to be one
	joined               // it says that it joins
	byHand               // of a person: guard is asked
	answers              // of a Bagpipe, in answer to one
)

// replayAll goes through all commits, and holds every object against its name: those that the
// commits need as they are read, the others of the repository after them.
func (a *Auditor) replayAll(ctx context.Context, tip, since gitstore.Hash) (commits []gitstore.Hash, found []result, err error) {
	reading := gitstore.NewScanning(a.ledger.Store, true)
	defer func() { err = errors.Join(err, reading.Close()) }()
	if commits, err = gitstore.ParentsFirst(ctx, a.ledger.Root, tip, since); err != nil {
		return nil, nil, err
	}
	if since.IsZero() {
		reading.Ahead()
		a.listed = slices.SortedFunc(slices.Values(commits), compareHashes)
	}
	if found, err = a.each(ctx, reading, commits); err != nil || !since.IsZero() {
		return commits, found, err
	}
	if err = reading.Rest(ctx); err == nil {
		err = gitstore.Connected(ctx, a.ledger.Root, tip, a.isListed)
	}
	return commits, found, err
}

func compareHashes(a, b gitstore.Hash) int { return bytes.Compare(a[:], b[:]) }

func (a *Auditor) isListed(h gitstore.Hash) bool {
	_, is := slices.BinarySearchFunc(a.listed, h, compareHashes)
	return is
}

// damaged tells, in git's words, which objects are not there or are not sound, where one was met
// when commits were read.
func (a *Auditor) damaged(ctx context.Context, tip, since gitstore.Hash, met error) error {
	if ctx.Err() != nil {
		return nil // it is told already
	}
	said, err := gitstore.Fsck(ctx, a.ledger.Root, tip, since)
	if err == nil && len(said) == 0 && gitstore.Unfit(met) {
		said = []string{met.Error()}
	}
	for _, line := range said {
		a.tell(Finding{Kind: Object, Text: line})
	}
	return err
}

// each looks at the commits one by one, some side by side: what is asked of one rests on it
// and its parents alone.
func (a *Auditor) each(ctx context.Context, reading *gitstore.Scanning, commits []gitstore.Hash) ([]result, error) {
	found := make([]result, len(commits))
	defer collectAt(paceFor(len(commits)))()
	workers, ctx := errgroup.WithContext(ctx)
	readers := make([]*reader, runtime.GOMAXPROCS(0))
	stretches := stretches{of: len(commits), among: len(readers)}
	for i := range readers {
		w := newReader(reading)
		readers[i] = w
		workers.Go(func() error {
			for from, to := stretches.next(); from < to; from, to = stretches.next() {
				for i := from; i < to; i++ {
					if err := ctx.Err(); err != nil {
						return err
					}
					var err error
					if found[i], err = a.commit(ctx, w, commits, i); err != nil {
						return fmt.Errorf("audit commit %s: %w", commits[i], err)
					}
				}
			}
			return nil
		})
	}
	err := workers.Wait()
	a.doubted = map[layout.ItemID]bool{}
	for _, w := range readers {
		maps.Copy(a.doubted, w.doubted)
	}
	return found, err
}

// collectAt sets by how many percent the memory in use may grow before it is collected, until end is called.
func collectAt(percent int) (end func()) {
	before := debug.SetGCPercent(percent)
	return func() { debug.SetGCPercent(max(before, usual)) } // it was off, maybe, until the first collection
}

const (
	usual      = 100
	inUse      = 120 << 20 // of the readers
	eachCommit = 64        // bytes that are kept of one
	room       = 250 << 20 // for what is read, of which nearly all is of no use a moment later
)

// paceFor gives the percent that leave room where so many commits are gone through.
func paceFor(commits int) int { return max(usual, 100*room/(inUse+eachCommit*commits)) }

// stretches parts a number of commits among goroutines. Each takes as many in a row as it can, as a
// commit's trees mostly differ in one entry from those that its reader has at hand; less in the end, so
// that all are ready together.
type stretches struct {
	of, among int
	mu        sync.Mutex // guards taken
	taken     int
}

const shortest = 512

// next gives the first commit of a stretch and the one after it; two that are equal: all are taken.
func (s *stretches) next() (from, to int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	from = s.taken
	s.taken += min(max(shortest, (s.of-from)/(2*s.among)), s.of-from)
	return from, s.taken
}

// review asks guard of the commits from the first that no replay explains, and tells all
// findings in order.
func (a *Auditor) review(ctx context.Context, since gitstore.Hash, commits []gitstore.Hash, found []result) error {
	first := len(commits)
	for i, r := range found {
		switch r.kind {
		case event:
			a.report.Events++
		case joined:
			a.report.Joins++
		case byHand:
			a.report.ByHand++
		case answers:
			a.report.Answers++
		}
		if r.signed {
			a.report.Signed++
		}
		if first == len(commits) && (r.kind >= byHand || len(r.told()) > 0 || r.list) {
			first = i
		}
	}
	breaches := map[gitstore.Hash][]guard.Breach{}
	if first < len(commits) {
		from, rest, err := a.reviewed(ctx, since, commits, first)
		if err != nil {
			return err
		}
		told, lists, err := a.guard.Review(ctx, from, gitstore.Hash{}, rest)
		if err != nil {
			return err
		}
		for _, b := range told {
			breaches[b.Commit.Hash] = append(breaches[b.Commit.Hash], b)
		}
		if err := a.vouchedAfterAll(commits, found, lists); err != nil {
			return err
		}
	}
	for i, h := range commits {
		for _, f := range found[i].told() {
			a.tell(f)
		}
		for _, b := range breaches[h] {
			a.breach(b, found[i])
		}
	}
	return nil
}

// reviewed gives the commits that guard is to see: from the parent of the first in question.
func (a *Auditor) reviewed(ctx context.Context, since gitstore.Hash, commits []gitstore.Hash, first int) (gitstore.Hash, []gitstore.Hash, error) {
	v, err := a.ledger.Store.At(commits[first])
	if err != nil {
		return since, nil, err
	}
	c, err := v.About()
	if err != nil || len(c.Parents) != 1 {
		return since, commits, err
	}
	tip := commits[len(commits)-1]
	rest, err := gitstore.ParentsFirst(ctx, a.ledger.Root, tip, c.Parents[0])
	return c.Parents[0], rest, err
}

// breach tells of what guard found, unless it was answered or the commit is told of already.
func (a *Auditor) breach(b guard.Breach, r result) {
	if !b.Open {
		a.report.Answered++
	}
	if b.Open && len(r.told()) == 0 {
		a.tell(Finding{Commit: b.Commit.Hash.String(), Item: b.Item, Kind: Breach, Text: "nothing answers what this commit did: " + state.Breaches(b.What)})
	}
}
