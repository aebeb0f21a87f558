package gitstore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"bagpipe/engine/gitstore/internal/history"
	"bagpipe/engine/gitstore/internal/odb"
	"bagpipe/engine/gitstore/internal/trees"
)

// Scanning is what Scans share. It is closed after them.
type Scanning struct {
	db      *odb.DB
	bulk    *odb.Bulk
	digests *odb.Digests
	end     func() error
	ahead   bool
	line    map[Hash][]byte // commits that Line read; Commit asks it after that
}

// NewScanning begins to read very many commits; with digests each object that is read is held against
// its name.
func NewScanning(s *Store, digests bool) *Scanning {
	c := &Scanning{db: s.repo.DB, bulk: s.repo.DB.Bulk(), end: func() error { return nil }, line: map[Hash][]byte{}}
	if digests {
		c.digests = odb.NewDigests()
		c.end = s.repo.DB.ReadMany() // whoever asks for all; who reads some commits beside an engine leaves its mappings alone
	}
	return c
}

// Close ends the mappings of packs.
func (c *Scanning) Close() error { return errors.Join(c.bulk.Close(), c.end()) }

// Rest holds those objects of the repository against their names that no Scan has read. An error
// that Unfit tells of is what was found.
func (c *Scanning) Rest(ctx context.Context) error { return c.bulk.Rest(c.digests, ctx.Err) }

// Unfit reports whether an error says that an object is damaged, or is not there.
func Unfit(err error) bool {
	return errors.Is(err, odb.ErrDigest) || errors.Is(err, odb.ErrMissing) || odb.IsCorrupt(err)
}

// mostKept is how many bytes of commits Line keeps: of some 200,000.
const mostKept = 64 << 20

// Met is a commit that Line read.
type Met struct {
	Hash Hash
	data []byte
}

// Line lists the commits from the one after since, which may be zero, to a tip, the oldest first, where each
// has one parent; ok is false where some has more, or cannot be read, and ParentsFirst has the
// answer. Each commit is told to met as it is read, from the tip on. A Scan of another goroutine may read these
// meanwhile, and Commit after it.
func (c *Scanning) Line(ctx context.Context, tip, since Hash, met func(Met)) (commits []Hash, ok bool) {
	s := c.bulk.Scan(c.digests)
	var block []byte // many commits in one, which costs the collector less than an object for each
	kept := 0
	for h := tip; h != since; {
		data, err := s.ReadAs(h, odb.TypeCommit)
		if err != nil || ctx.Err() != nil {
			return nil, false
		}
		parents, err := odb.ParentsOf(data)
		if err != nil || len(parents) > 1 || len(parents) == 0 && !since.IsZero() {
			return nil, false
		}
		if kept += len(data); kept < mostKept {
			if len(block)+len(data) > cap(block) {
				block = make([]byte, 0, max(len(data), 1<<18))
			}
			block = append(block, data...)
			data = block[len(block)-len(data):]
			c.line[h] = data
		}
		commits = append(commits, h)
		met(Met{h, data})
		if len(parents) == 0 {
			break
		}
		h = parents[0]
	}
	slices.Reverse(commits)
	return commits, true
}

// Scan reads commits that mostly follow one another, and remembers what it read lately. It is one
// goroutine's.
type Scan struct {
	of     *Scanning
	objs   *odb.Scan
	ways   trees.Ways // to the folders of what Diff visited last
	lately [2]rooted  // commits that Commit or Read gave, the last one first
}

// rooted is a commit with its root tree.
type rooted struct{ commit, tree Hash }

// Ahead says that Rest will be asked, so that Scans made from now on may read objects without asking an index.
func (c *Scanning) Ahead() { c.ahead = true }

// Scan makes one.
func (c *Scanning) Scan() *Scan {
	s := &Scan{of: c, objs: c.bulk.Scan(c.digests)}
	if c.ahead {
		s.objs.Ahead()
	}
	return s
}

// At gives the files at a commit, for the goroutine of the Scan alone.
func (s *Scan) At(commit Hash) (View, error) {
	for _, of := range s.lately {
		if of.commit == commit {
			return s.view(of), nil
		}
	}
	c, err := s.objs.ReadCommit(commit)
	if err != nil {
		return View{}, err
	}
	return s.view(rooted{commit, c.Tree}), nil
}

// Commit gives a commit and the files at it.
func (s *Scan) Commit(h Hash) (Commit, View, error) {
	if data, known := s.of.line[h]; known {
		return s.Read(Met{h, data})
	}
	data, err := s.objs.ReadNext(h, odb.TypeCommit)
	if err != nil {
		return Commit{}, View{}, fmt.Errorf("read commit %s: %w", h, err)
	}
	return s.Read(Met{h, data})
}

// Read is Commit of one that Line reads.
func (s *Scan) Read(m Met) (Commit, View, error) {
	c, err := odb.ParseCommit(m.data)
	if err != nil {
		return Commit{}, View{}, err
	}
	return s.commit(m.Hash, c)
}

func (s *Scan) commit(h Hash, c odb.Commit) (Commit, View, error) {
	of := rooted{h, c.Tree}
	s.lately = [2]rooted{of, s.lately[0]}
	return history.NewCommit(h, c), s.view(of), nil
}

func (s *Scan) view(of rooted) View {
	return View{db: s.of.db, scan: s.objs, ways: &s.ways, commit: of.commit, tree: of.tree}
}

// Difference is a file that differs, with the names of its bytes on either side; zero: there is none.
type Difference struct {
	Path    string
	Was, Is Hash
}

// Diff visits every file that differs from one view to another, in the order of paths; the zero
// view has no files. Equal subtrees are passed over unread, and no file is read.
func (s *Scan) Diff(from, to View, visit func(Difference) error) error {
	return s.DiffWithin(from, to, nil, visit)
}

// DiffWithin is Diff of the folders that enter does not refuse, those above them included; nil: it
// refuses none.
func (s *Scan) DiffWithin(from, to View, enter func(dir string) bool, visit func(Difference) error) error {
	s.ways.Forget()
	return trees.Diff(s.objs, from.tree, to.tree, "", enter, func(in trees.Pair, path string, was, is Hash) error {
		s.ways.Keep(from.tree, to.tree, in)
		return visit(Difference{path, was, is})
	})
}

// Blob gives the bytes of a file, which must not be changed; nil of the zero name.
func (s *Scan) Blob(d Difference, h Hash) ([]byte, error) {
	if h.IsZero() {
		return nil, nil
	}
	data, err := s.objs.ReadNext(h, odb.TypeBlob)
	if err == nil && data == nil {
		data = []byte{}
	}
	if err != nil {
		return nil, fmt.Errorf("read a change: read %s: %w", d.Path, err)
	}
	return data, nil
}
