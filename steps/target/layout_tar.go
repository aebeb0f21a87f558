package target

import (
	"archive/tar"
	"cmp"
	"context"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"bagpipe/bags/files"
	"bagpipe/layout"
)

// tarTarget keeps each bag as one tar. Its vouchers come first, so that one pass over the
// stream judges all that follows.
type tarTarget struct {
	b     backend
	now   func() time.Time
	token string // of this target among those that put on the same store
}

const tarEnd = ".tar"

// tarBag is a bag as a tar: the same bytes each time.
type tarBag struct {
	Bag
	top   string        // the folder in it
	files []files.Entry // in their order
}

func newTarBag(ctx context.Context, b Bag, at string) (*tarBag, error) {
	tree, err := files.Scan(ctx, b.Dir)
	if err != nil {
		return nil, err
	}
	if err := tree.CheckRegular(); err != nil {
		return nil, err
	}
	slices.SortFunc(tree.Files, func(a, b files.Entry) int {
		return cmp.Or(cmp.Compare(order(a.Path), order(b.Path)), strings.Compare(a.Path, b.Path))
	})
	return &tarBag{b, topOf(b.Item, at), tree.Files}, nil
}

// topOf is the folder in a tar that stands at a place: the item's identifier, or, where the tar has
// a name of its own, that.
func topOf(item layout.ItemID, at string) string {
	base := strings.TrimSuffix(path.Base(at), tarEnd)
	if _, _, _, is := ParsePlace(base); is {
		return string(item)
	}
	return base
}

func order(name string) int {
	if isVoucher(name) {
		return 0
	}
	return 1
}

func (t *tarBag) header(f *files.Entry) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeReg, Name: t.top + "/" + f.Path, Mode: 0o644, Size: f.Size, Format: tar.FormatPAX}
}

const tarBlock = 512

// size is that of the tar, by its headers alone.
func (t *tarBag) size() (n int64, err error) {
	for i := range t.files {
		var head counter
		if err := tar.NewWriter(&head).WriteHeader(t.header(&t.files[i])); err != nil {
			return 0, err
		}
		n += int64(head) + (t.files[i].Size+tarBlock-1)/tarBlock*tarBlock
	}
	return n + 2*tarBlock, nil
}

// open gives the tar from an offset on.
func (t *tarBag) open(offset int64) (reader, error) {
	r, w := io.Pipe()
	go func() { w.CloseWithError(t.write(w)) }() // ends when r is read or closed
	if _, err := io.CopyN(io.Discard, r, offset); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

func (t *tarBag) write(to io.Writer) error {
	w := tar.NewWriter(to)
	for i := range t.files {
		if err := w.WriteHeader(t.header(&t.files[i])); err != nil {
			return err
		}
		f, err := os.Open(filepath.Join(t.Dir, filepath.FromSlash(t.files[i].Path)))
		if err != nil {
			return err
		}
		_, err = io.Copy(w, f)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return w.Close()
}

// Put finds the tar among the revisions there, or makes the next.
func (t *tarTarget) Put(ctx context.Context, b Bag) (layout.DepositCopy, error) {
	return meanwhile(func() (layout.DepositCopy, error) { return t.put(ctx, b) })
}

func (t *tarTarget) put(ctx context.Context, b Bag) (none layout.DepositCopy, err error) {
	own, err := localVouchers(b.Dir, isVoucher)
	if err != nil {
		return none, err
	}
	for n := 1; ; n++ {
		at, err := t.place(ctx, b, n)
		if err != nil {
			return none, err
		}
		there, err := t.vouchers(ctx, at)
		if errors.Is(err, fs.ErrNotExist) {
			return t.make(ctx, b, own, at)
		}
		if err != nil {
			return none, err
		}
		how, err := own.compare(there)
		switch {
		case err != nil:
			return none, err
		case how == OtherBag:
			return none, fmt.Errorf("%s: %w", layout.EncodePath(at), ErrOther)
		case how >= RedatedBag:
			c, err := t.verify(ctx, at, there.digest(), b.Progress)
			if err == nil {
				err = errors.Join(t.b.settle(ctx, at), parts(t.b, at, t.token).clear(ctx))
			}
			if err == nil {
				c.Retention, err = retentionOf(ctx, t.b, at)
			}
			if err == nil {
				c.Version, err = t.b.version(ctx, at)
			}
			return c, err
		}
	}
}

// place is where revision n of a bag stands: ID.tar or, of a name of its own, ID/NAME.tar. What
// stands there under another name is that revision all the same.
func (t *tarTarget) place(ctx context.Context, b Bag, n int) (string, error) {
	dir := Revision(Place(b.Item, b.Version), n)
	there, err := stands(ctx, t.b, dir+tarEnd)
	if err != nil || there {
		return dir + tarEnd, err
	}
	named, err := t.named(ctx, dir)
	switch {
	case err != nil || len(named) > 0:
		return path.Join(append([]string{dir}, named[:min(1, len(named))]...)...), err
	case b.Name != "":
		return dir + "/" + b.Name + tarEnd, nil
	}
	return dir + tarEnd, nil
}

// named lists the tars in the folder of a revision.
func (t *tarTarget) named(ctx context.Context, dir string) (names []string, err error) {
	err = t.b.list(ctx, dir, false, func(name string, _ int64) error {
		if strings.HasSuffix(name, tarEnd) && !strings.HasPrefix(name, ".") {
			names = append(names, name)
		}
		return nil
	})
	slices.Sort(names)
	return names, err
}

func (t *tarTarget) make(ctx context.Context, b Bag, own vouchers, at string) (layout.DepositCopy, error) {
	c, err := t.makeStaged(ctx, b, own, at)
	return c, parts(t.b, at, t.token).lost(ctx, err)
}

func (t *tarTarget) makeStaged(ctx context.Context, b Bag, own vouchers, at string) (none layout.DepositCopy, err error) {
	packed, err := newTarBag(ctx, b, at)
	if err != nil {
		return none, err
	}
	size, err := packed.size()
	if err != nil {
		return none, err
	}
	begin, stage := t.now(), at
	if t.b.traits().renames {
		part := parts(t.b, at, t.token)
		stage = part.at()
		if err := part.claim(ctx); err != nil {
			return none, err
		}
	}
	for try := 1; ; try++ {
		c, sure, err := t.send(ctx, packed, own, stage, size)
		if err == nil {
			err = t.b.settle(ctx, stage)
		}
		if err != nil && (stage != at || !errors.Is(err, fs.ErrExist)) {
			return none, err
		}
		stood := err != nil
		if stood || !sure {
			c, err = t.readBack(ctx, packed, own, stage)
		}
		c.Place, c.Retention = layout.EncodePath(at), t.b.traits().until(begin)
		var wrong *Damage
		if stage == at && errors.As(err, &wrong) { // another engine's may have come in first: of another bag, or with our upload
			return c, fs.ErrExist
		}
		if errors.As(err, &wrong) && try == 1 && stage != at {
			if err := t.b.remove(ctx, stage); err != nil {
				return none, err
			}
			continue
		}
		if err == nil && stood {
			err = prolong(ctx, t.b, "", []string{at}, begin)
		}
		if err == nil && stage != at {
			err = t.b.rename(ctx, stage, at)
		}
		if err == nil {
			c.Version, err = t.b.version(ctx, at)
		}
		return c, err
	}
}

// send writes a tar. sure: it was judged on its way, and the store says that it has just that.
func (t *tarTarget) send(ctx context.Context, packed *tarBag, own vouchers, to string, size int64) (c layout.DepositCopy, sure bool, err error) {
	what := file{size: size, open: packed.open, tell: packed.Progress}
	if !t.b.traits().vouches {
		return c, false, t.b.write(ctx, to, what)
	}
	r, w := io.Pipe()
	type judged struct {
		layout.DepositCopy
		err error
	}
	end := make(chan judged, 1)
	go func() { // ends when the write does
		c, err := t.judge(ctx, r, to, own.digest(), nil)
		r.CloseWithError(cmp.Or(err, io.ErrClosedPipe)) // lets the write go on
		end <- judged{c, err}
	}()
	whole, begun := false, atomic.Int32{} // parts are opened by several goroutines
	what.open = func(offset int64) (reader, error) {
		from, err := packed.open(offset)
		if n := begun.Add(1); err != nil || offset > 0 || n > 1 { // what is sent once more is read back
			return from, err
		}
		return &reading{from, func(b []byte) (int, error) {
			n, err := from.Read(b)
			if n > 0 { // a pipe waits with nothing, too
				_, _ = w.Write(b[:n]) // a tar that is judged already takes no more
			}
			return n, err
		}}, nil
	}
	what.vouch = func() { whole = true }
	err = t.b.write(ctx, to, what)
	w.Close()
	j := <-end
	return j.DepositCopy, whole && begun.Load() == 1 && j.err == nil, err
}

// readBack judges a tar that was written: by the server's digest of it, where it computes one, which
// must be that of the bag's own tar; else by reading it.
func (t *tarTarget) readBack(ctx context.Context, packed *tarBag, own vouchers, at string) (none layout.DepositCopy, err error) {
	var sum []byte
	does, err := t.b.digests(ctx, path.Dir(at), []string{path.Base(at)}, files.SHA512, func(_ int, got []byte) error {
		sum = got
		return nil
	})
	if err != nil {
		return none, err
	}
	if !does {
		return t.verify(ctx, at, own.digest(), packed.Progress)
	}
	in, err := packed.open(0)
	if err != nil {
		return none, err
	}
	c, err := t.judge(ctx, in, at, own.digest(), packed.Progress)
	if err = errors.Join(err, in.Close()); err == nil && c.Digest != "sha512:"+hex.EncodeToString(sum) {
		err = damage("it was altered on its way")
	}
	return c, err
}

// vouchers reads the beginning of a tar.
func (t *tarTarget) vouchers(ctx context.Context, at string) (vouchers, error) {
	v := vouchers{}
	err := t.walk(ctx, at, nil, func(name string, _ int64, r io.Reader) (err error) {
		if !isVoucher(name) {
			return errEnough
		}
		v[name], err = io.ReadAll(r)
		return err
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return v, err
}

// walk reads a tar, to its last byte into also unless that is nil. A member that no bag of
// ours has is damage.
func (t *tarTarget) walk(ctx context.Context, at string, also io.Writer, each func(name string, size int64, r io.Reader) error) (err error) {
	in, err := t.b.open(ctx, at, 0)
	if err == nil {
		defer func() { err = errors.Join(err, in.Close()) }()
		err = walkTar(ctx, in, also, each)
	}
	return err
}

func walkTar(ctx context.Context, in io.Reader, also io.Writer, each func(name string, size int64, r io.Reader) error) error {
	from := in
	if also != nil {
		from = io.TeeReader(in, also)
	}
	for r := tar.NewReader(from); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) && also == nil {
			return nil
		}
		if errors.Is(err, io.EOF) {
			return copyTold(ctx, io.Discard, from, nil)
		}
		if err != nil {
			return torn(err)
		}
		_, name, inside := strings.Cut(h.Name, "/")
		if !inside || name == "" || h.Typeflag != tar.TypeReg {
			return damage("%s is no file of a bag", layout.EncodePath(h.Name))
		}
		if err := each(name, h.Size, r); err != nil {
			return torn(err)
		}
	}
}

// verify reads a tar to its end, and answers it as a copy, whose digest is that of all its
// bytes; want is the digest of its vouchers, or "".
func (t *tarTarget) verify(ctx context.Context, at, want string, tell func(int64)) (none layout.DepositCopy, err error) {
	in, err := t.b.open(ctx, at, 0)
	if err != nil {
		return none, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	return t.judge(ctx, in, at, want, tell)
}

// judge is that of a tar that is read from in.
func (t *tarTarget) judge(ctx context.Context, in io.Reader, at, want string, tell func(int64)) (layout.DepositCopy, error) {
	v, whole := vouchers{}, sha512.New()
	var s seen
	var how files.Algorithm
	judge := func() (err error) {
		if s.sums != nil {
			return nil
		}
		if want != "" && v.digest() != want {
			return damage("its tag manifests are not those that were written")
		}
		how, s.sums, err = v.sums()
		if err != nil {
			return err
		}
		for name, data := range v {
			if err := s.take(name, int64(len(data)), digestOf(how, data)); err != nil {
				return err
			}
		}
		return nil
	}
	err := walkTar(ctx, in, io.MultiWriter(whole, teller(tell)), func(name string, size int64, r io.Reader) (err error) {
		if isVoucher(name) && s.sums == nil {
			v[name], err = io.ReadAll(r)
			return err
		}
		if err := judge(); err != nil {
			return err
		}
		h := how.New()
		if err := copyTold(ctx, h, r, nil); err != nil {
			return err
		}
		return s.take(name, size, h.Sum(nil))
	})
	if err == nil {
		err = judge()
	}
	if err == nil {
		err = s.end("")
	}
	now := t.now()
	return layout.DepositCopy{Place: layout.EncodePath(at), Layout: LayoutTar, Files: s.files, Bytes: s.bytes,
		Digest: "sha512:" + hex.EncodeToString(whole.Sum(nil)), Written: now, Verified: now, Outcome: layout.FixityPassed}, err
}

// Check reads the tar, or asks for its vouchers alone.
func (t *tarTarget) Check(ctx context.Context, c layout.DepositCopy, level Level) (int, int64, error) {
	at, err := layout.DecodePath(c.Place)
	if err != nil {
		return 0, 0, err
	}
	if level == Exists {
		_, err := t.vouchers(ctx, at)
		if err == nil {
			err = t.longEnough(ctx, at, c)
		}
		return c.Files, c.Bytes, err
	}
	does, err := t.b.digests(ctx, path.Dir(at), []string{path.Base(at)}, files.SHA512, func(_ int, sum []byte) error {
		if "sha512:"+hex.EncodeToString(sum) != c.Digest {
			return damage("it is not the tar that was written")
		}
		return nil
	})
	if does || err != nil {
		return c.Files, c.Bytes, err
	}
	found, err := t.verify(ctx, at, "", nil)
	if err == nil && found.Digest != c.Digest {
		err = damage("it is not the tar that was written")
	}
	return found.Files, found.Bytes, err
}

// Get unpacks the tar.
func (t *tarTarget) Get(ctx context.Context, c layout.DepositCopy, to string) (err error) {
	at, err := layout.DecodePath(c.Place)
	if err != nil {
		return err
	}
	into, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, into.Close()) }()
	return t.unpack(ctx, at, into)
}

// Replace sets the damaged tar aside, where tars can be renamed, and writes a sound one.
func (t *tarTarget) Replace(ctx context.Context, c layout.DepositCopy, b Bag) (none layout.DepositCopy, err error) {
	at, err := layout.DecodePath(c.Place)
	if err != nil {
		return none, err
	}
	own, err := localVouchers(b.Dir, isVoucher)
	if err != nil {
		return none, err
	}
	found, err := t.verify(ctx, at, own.digest(), b.Progress)
	if err == nil && found.Digest == c.Digest {
		return mended(ctx, t.b, at, func() (layout.DepositCopy, error) { return t.Put(ctx, b) })
	}
	if err := setAside(ctx, t.b, at, aside(at)); err != nil {
		return none, err
	}
	return mended(ctx, t.b, at, func() (layout.DepositCopy, error) {
		return remade(func() (layout.DepositCopy, error) { return t.make(ctx, b, own, at) }, func() (layout.DepositCopy, error) { return t.verify(ctx, at, own.digest(), nil) })
	})
}

// Poor says what the store cannot do.
func (t *tarTarget) Poor() []string { return t.b.poor() }

// Close ends the connections.
func (t *tarTarget) Close() error { return t.b.close() }
