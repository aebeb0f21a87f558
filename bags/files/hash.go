package files

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"io"
	"math/bits"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// How files are hashed. The rules are:
//
//   - every file is read once, for all its digests;
//   - workers take the next file, the large ones first: with a large file taken
//     last, the other cores would wait for it;
//   - a large file with several digests gets a goroutine per digest, and the
//     next blocks are read while they work, so that two digests cost little more
//     than the slower one;
//   - what is not a regular file any more when it is opened is an error; opening
//     does not block on a FIFO.

const (
	hashBlock = 256 << 10
	// leastBlock is the block of small files. To clear a whole hashBlock for each tree of two
	// files took 6 of 100 parts of the processor time of a small accession.
	leastBlock = 4 << 10
	// largeFile is the size from which a goroutine per digest pays.
	largeFile = 4 << 20
	// earlyFile is the size from which a file taken last would hold up the end: a manifest of
	// 20,000 lines costs one core 5 ms.
	earlyFile = 256 << 10
	// HeadBytes bounds the beginning of a file that Hash hands on.
	HeadBytes = 3072
)

// HashOptions say how to hash. The zero value is useful.
type HashOptions struct {
	Workers  int            // default the cores
	Progress func(Progress) // calls do not overlap
}

// Progress counts the files and bytes done. The totals are 0 where nobody
// knows them beforehand.
type Progress struct{ Files, Bytes, TotalFiles, TotalBytes int64 }

// Hashed is one file's digests. Head is valid during the call only.
type Hashed struct {
	Index int // in the list given
	Size  int64
	Sums  Sums
	Head  []byte // the first HeadBytes
}

// ErrChanged says that a file is not what it was when it was listed.
var ErrChanged = errors.New("the file changed while it was read")

// Hash reads every file of t once and gives its digests to each, whose calls do
// not overlap and come in no order. An error ends the work.
func Hash(ctx context.Context, t *Tree, as []Algorithm, o HashOptions, each func(Hashed) error) error {
	plan := make([]Planned, len(t.Files))
	set := SetOf(as...)
	for i := range t.Files {
		plan[i] = Planned{Index: i, Path: t.stands(t.Files[i].Path), Size: t.Files[i].Size, Set: set}
	}
	return HashPlan(ctx, t.Dir, plan, o, each)
}

// Planned is one file to be hashed, by the algorithms of Set. Index is handed back.
type Planned struct {
	Index int
	Path  string
	Size  int64
	Set   Set
}

// Reader is a file that is hashed.
type Reader interface {
	io.Reader
	// endsShort reports whether a read that gives all that was listed, and less than
	// it could have, need not be followed by another that only finds the end.
	endsShort() bool
	Close() error
}

// fileOpener opens files for one goroutine.
type fileOpener interface {
	Open(path string) (Reader, error)
	Close()
}

// HashPlan hashes the planned files below dir.
func HashPlan(ctx context.Context, dir string, plan []Planned, o HashOptions, each func(Hashed) error) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("hash: %w", err)
	}
	defer root.Close()
	return hashFrom(ctx, func() fileOpener { return &Opener{Root: root} }, plan, o, each)
}

// hashFrom hashes the planned files on all workers, each with its own opener.
func hashFrom(ctx context.Context, openers func() fileOpener, plan []Planned, o HashOptions, each func(Hashed) error) error {
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	slices.SortStableFunc(plan, func(a, b Planned) int {
		if a.Size < earlyFile && b.Size < earlyFile {
			return 0 // small files in the order of the listing: their folders are near each other
		}
		return int(min(max(b.Size-a.Size, -1), 1))
	})
	p := newHashPool(plan, o, each)
	var next atomic.Int64
	work := func(ctx context.Context) error {
		w := newHashWorker(p)
		files := openers()
		defer files.Close()
		for {
			i := int(next.Add(1)) - 1
			if i >= len(plan) {
				return nil
			}
			if err := w.open(ctx, files, plan[i]); err != nil {
				return fmt.Errorf("hash %s: %w", plan[i].Path, err)
			}
		}
	}
	if few(len(plan), p.so.TotalBytes) {
		return work(ctx)
	}
	g, ctx := errgroup.WithContext(ctx)
	for range min(o.Workers, len(plan)) {
		g.Go(func() error { return work(ctx) })
	}
	return g.Wait()
}

// few reports whether the caller reads files sooner by itself than it would wake others.
func few(files int, bytes int64) bool {
	const fewFiles, fewBytes = 32, 128 << 10
	return files <= fewFiles && bytes <= fewBytes
}

// HashOpened hashes planned files that open gives, several at once.
func HashOpened(ctx context.Context, open func(path string) (io.ReadCloser, error), plan []Planned, o HashOptions, each func(Hashed) error) error {
	return hashFrom(ctx, func() fileOpener { return openFunc(open) }, plan, o, each)
}

type openFunc func(path string) (io.ReadCloser, error)

func (f openFunc) Open(p string) (Reader, error) {
	r, err := f(p)
	return opened{r}, err
}

func (openFunc) Close() {}

type opened struct{ io.ReadCloser }

func (opened) endsShort() bool { return false }

func newHashPool(plan []Planned, o HashOptions, each func(Hashed) error) *hashPool {
	p := &hashPool{each: each, progress: o.Progress, so: Progress{TotalFiles: int64(len(plan))}}
	for i := range plan {
		p.so.TotalBytes += plan[i].Size
	}
	return p
}

// hashPool is shared by the workers.
type hashPool struct {
	each func(Hashed) error

	mu       sync.Mutex // serializes each and progress, guards so
	progress func(Progress)
	so       Progress
}

func (p *hashPool) done(h Hashed) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.so.Files++
	if p.progress != nil {
		p.progress(p.so)
	}
	return p.each(h)
}

func (p *hashPool) read(n int) {
	if p.progress == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.so.Bytes += int64(n)
	p.progress(p.so)
}

type hashWorker struct {
	pool    *hashPool
	hashers [len(algorithms)]hash.Hash
	block   []byte
	wide    []wideBlock // of large files with several digests; nil until there is one
	head    []byte
}

func newHashWorker(p *hashPool) *hashWorker {
	return &hashWorker{pool: p}
}

func (w *hashWorker) open(ctx context.Context, files fileOpener, it Planned) (err error) {
	f, err := files.Open(it.Path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return w.file(ctx, f, it)
}

func (w *hashWorker) file(ctx context.Context, f Reader, it Planned) (err error) {
	it.Set.each(func(i int) {
		if w.hashers[i] == nil {
			w.hashers[i] = algorithms[i].new()
		}
		w.hashers[i].Reset()
	})
	w.head = w.head[:0]
	var n int64
	if it.Size >= largeFile && it.Set.count() > 1 {
		n, err = w.readWide(ctx, f, it.Set)
	} else {
		n, err = w.readPlain(ctx, f, it)
	}
	if err != nil {
		return err
	}
	h := Hashed{Index: it.Index, Size: n, Head: w.head}
	it.Set.each(func(i int) { h.Sums[i] = w.hashers[i].Sum(nil) })
	return w.pool.done(h)
}

func (w *hashWorker) readPlain(ctx context.Context, r Reader, it Planned) (total int64, err error) {
	if size := min(hashBlock, max(leastBlock, 1<<bits.Len64(uint64(it.Size)))); len(w.block) < size {
		w.block = make([]byte, size)
	}
	buf := w.block
	for {
		if err := ctx.Err(); err != nil {
			return total, err
		}
		n, err := r.Read(buf)
		w.take(buf[:n])
		total += int64(n)
		it.Set.each(func(i int) { w.hashers[i].Write(buf[:n]) })
		if errors.Is(err, io.EOF) || err == nil && total == it.Size && n < len(buf) && r.endsShort() {
			return total, nil
		}
		if err != nil {
			return total, err
		}
	}
}

// wideBlocks bounds the blocks of a large file under way: with fewer, the
// digests wait for each other at every block, and the slower one stands still
// whenever the system is late to wake it.
const wideBlocks = 6

// wideBlock is one of them.
type wideBlock struct {
	data  []byte
	lanes atomic.Int32 // the digests that have not had it yet
}

// readWide gives each digest its goroutine and reads ahead of them.
func (w *hashWorker) readWide(ctx context.Context, r io.Reader, set Set) (total int64, err error) {
	if w.wide == nil {
		w.wide = make([]wideBlock, wideBlocks)
		for i := range w.wide {
			w.wide[i].data = make([]byte, hashBlock)
		}
	}
	free := make(chan *wideBlock, wideBlocks)
	for i := range w.wide {
		free <- &w.wide[i]
	}
	type part struct {
		block *wideBlock
		n     int
	}
	var ends sync.WaitGroup
	var lanes []chan part
	set.each(func(i int) {
		lane := make(chan part, wideBlocks)
		lanes = append(lanes, lane)
		ends.Go(func() {
			for p := range lane {
				w.hashers[i].Write(p.block.data[:p.n])
				if p.block.lanes.Add(-1) == 0 {
					free <- p.block // never blocks: there are no more blocks than room
				}
			}
		})
	})
	defer ends.Wait()
	defer func() {
		for _, lane := range lanes {
			close(lane)
		}
	}()
	for {
		if err := ctx.Err(); err != nil {
			return total, err
		}
		b := <-free
		n, err := io.ReadFull(r, b.data)
		w.take(b.data[:n])
		total += int64(n)
		b.lanes.Store(int32(len(lanes)))
		for _, lane := range lanes {
			lane <- part{b, n}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return total, nil
		}
		if err != nil {
			return total, err
		}
	}
}

func (w *hashWorker) take(b []byte) {
	if len(b) == 0 {
		return
	}
	if len(w.head) == 0 {
		w.head = append(w.head, b[:min(len(b), HeadBytes)]...)
	}
	w.pool.read(len(b))
}
