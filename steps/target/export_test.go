package target

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"bagpipe/layout"
)

// Copy is a copy on record.
type Copy = layout.DepositCopy

// ErrStopped is what a target answers whose engine is dead.
var ErrStopped = errors.New("stopped")

// Stops is an engine that dies at one of its writes.
type Stops struct {
	mu    sync.Mutex // guards what follows
	left  int        // writes until then; negative: it lives on
	Count int        // writes so far
	dead  bool
	pause func() // called in the place of a death, once
	fails error  // of all writes from that point on, in the place of a death

	unsynced map[string]bool // files that were written, and not settled since
}

// OpenFailing opens a target all of whose writes fail from the point on at which OpenStopping's engine dies, until
// Heal is called: what is there can be read, and removed.
func OpenFailing(name layout.Name, c Config, now func() time.Time, k int, fails error) (Target, *Stops, error) {
	t, s, err := OpenStopping(name, c, now, k)
	if err == nil {
		s.fails = fails
	}
	return t, s, err
}

// Heal ends the failures, and reports whether there was one.
func (s *Stops) Heal() (failed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	failed, s.dead, s.left = s.dead, false, -1
	return failed
}

// failure is that of a write at a dead point: an engine's end, or what the store said.
func (s *stopping) failure() error {
	if s.fails == nil {
		return ErrStopped
	}
	if f, is := s.backend.(*folder); is {
		return f.down(&fs.PathError{Op: "write", Path: "x", Err: s.fails})
	}
	return &Down{s.fails}
}

// OpenPausing opens a target that calls pause at the point at which OpenStopping's engine dies.
func OpenPausing(name layout.Name, c Config, now func() time.Time, k int, pause func()) (Target, error) {
	t, s, err := OpenStopping(name, c, now, k)
	if err == nil {
		s.pause = pause
	}
	return t, err
}

// OpenStopping opens a target whose engine dies at the k-th point among: before a write, in the
// middle of it, and before each rename, removal and settling; 0: it lives on.
func OpenStopping(name layout.Name, c Config, now func() time.Time, k int) (Target, *Stops, error) {
	b, err := openBackend(name, c, now, func() (bool, error) { return false, nil })
	if err != nil {
		return nil, nil, err
	}
	s := &Stops{left: k, unsynced: map[string]bool{}}
	b = &stopping{b, s}
	switch c.Layout {
	case LayoutTar:
		return &tarTarget{b, now, newToken()}, s, nil
	case LayoutOCFL:
		return newOCFL(b, now), s, nil
	}
	return &bagTarget{b, now, newToken()}, s, nil
}

// point is one at which the engine may die.
func (s *Stops) point() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Count++
	s.left--
	if s.left == 0 && s.pause != nil {
		s.pause()
		return nil
	}
	if s.left == 0 || s.dead {
		s.dead = true
		return ErrStopped
	}
	return nil
}

func (s *Stops) isDead() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead && s.fails == nil {
		return ErrStopped
	}
	return nil
}

// Dead reports whether it died.
func (s *Stops) Dead() bool { return s.isDead() != nil }

// PowerCut takes from a folder of this machine what is not durable at the engine's death: of every other file the bytes, of
// the others the name, too.
func (s *Stops) PowerCut(dir string) error {
	var errs []error
	for i, name := range sortedKeys(s.unsynced) {
		at := filepath.Join(dir, name)
		if _, err := os.Lstat(at); err != nil {
			continue // it was removed, or never made
		}
		if i%2 == 0 {
			errs = append(errs, os.Chmod(at, 0o644), os.Truncate(at, 0))
		} else {
			errs = append(errs, os.Remove(at))
		}
	}
	return errors.Join(errs...)
}

// moves notes of the files below a name that they are durable, or have another name.
func (s *Stops) moves(from, to string, durable bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.unsynced {
		rest, below := strings.CutPrefix(name+"/", from+"/")
		if !below && from != "" {
			continue
		}
		delete(s.unsynced, name)
		if !durable {
			s.unsynced[strings.TrimSuffix(to+"/"+rest, "/")] = true
		}
	}
}

type stopping struct {
	backend
	*Stops
}

func (s *stopping) open(ctx context.Context, name string, offset int64) (reader, error) {
	if err := s.isDead(); err != nil {
		return nil, err
	}
	return s.backend.open(ctx, name, offset)
}

func (s *stopping) list(ctx context.Context, dir string, deep bool, each func(string, int64) error) error {
	if err := s.isDead(); err != nil {
		return err
	}
	return s.backend.list(ctx, dir, deep, each)
}

func (s *stopping) write(ctx context.Context, name string, f file) error {
	if s.point() != nil {
		return s.failure()
	}
	s.mu.Lock()
	s.unsynced[name] = true
	s.mu.Unlock()
	whole := f.open
	if s.pausesIn() {
		f.open = func(offset int64) (reader, error) {
			r, err := whole(offset)
			return &pausing{r, f.size / 2, s.pause}, err
		}
		return s.backend.write(ctx, name, f)
	}
	if s.point() != nil {
		f.open = func(offset int64) (reader, error) {
			r, err := whole(offset)
			return &half{r, f.size / 2}, err
		}
		if err := s.backend.write(ctx, name, f); s.fails == nil {
			return errors.Join(ErrStopped, err)
		}
		return s.failure()
	}
	return s.backend.write(ctx, name, f)
}

// pausesIn reports whether the pause is in the middle of the write that comes, and counts its point then.
func (s *Stops) pausesIn() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pause == nil || s.left != 1 {
		return false
	}
	s.left--
	s.Count++
	return true
}

// pausing calls pause in the middle.
type pausing struct {
	reader
	left  int64
	pause func()
}

func (p *pausing) Read(b []byte) (int, error) {
	if p.left <= 0 && p.pause != nil {
		p.pause()
		p.pause = nil
	}
	if p.pause != nil {
		b = b[:min(int64(len(b)), p.left)]
	}
	n, err := p.reader.Read(b)
	p.left -= int64(n)
	return n, err
}

// half breaks off in the middle.
type half struct {
	reader
	left int64
}

func (h *half) Read(b []byte) (int, error) {
	if h.left <= 0 {
		return 0, ErrStopped
	}
	n, err := io.LimitReader(h.reader, h.left).Read(b)
	h.left -= int64(n)
	return n, err
}

func (s *stopping) replace(ctx context.Context, name string, data []byte) error {
	if s.point() != nil {
		return s.failure()
	}
	return s.backend.replace(ctx, name, data)
}

func (s *stopping) settle(ctx context.Context, name string) error {
	if s.point() != nil {
		return s.failure()
	}
	err := s.backend.settle(ctx, name)
	if err == nil {
		s.moves(name, "", true)
	}
	return err
}

func (s *stopping) rename(ctx context.Context, from, to string) error {
	if s.point() != nil {
		return s.failure()
	}
	err := s.backend.rename(ctx, from, to)
	if err == nil {
		s.moves(from, to, false)
	}
	return err
}

func (s *stopping) remove(ctx context.Context, name string) error {
	if s.point() != nil && s.fails == nil {
		return ErrStopped
	}
	return s.backend.remove(ctx, name)
}

// Unsound is what is said of a copy whose reading fails with an error.
func Unsound(err error) error { return unsound(err) }

// Idle is a connection that ends when nothing came, or went, for long.
func Idle(c net.Conn) net.Conn { return &idle{c} }

// InFolder is what a folder says of an error.
func InFolder(err error) error { return (&folder{}).down(err) }

// ListFolder lists the files of a folder as a folder target does.
func ListFolder(ctx context.Context, dir string) (names []string, err error) {
	err = (&folder{dir: dir}).list(ctx, ".", false, func(name string, _ int64) error {
		names = append(names, name)
		return nil
	})
	return names, err
}
