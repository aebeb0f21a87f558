package target

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"bagpipe/bags/files"
	"bagpipe/layout"
)

// keep writes a file of a copy below a root, and goes on with one that was written in part; one of
// its whole length is kept, and judged with the bag.
func keep(ctx context.Context, into *os.Root, name string, size int64, open func(offset int64) (reader, error)) (err error) {
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return damage("%s is no name in a bag", layout.EncodePath(name))
	}
	if err := into.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	have := int64(0)
	switch info, err := into.Lstat(name); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case info.Mode().IsRegular() && info.Size() == size:
		return nil
	case info.Mode().IsRegular() && info.Size() < size:
		have = info.Size()
	default:
		if err := into.RemoveAll(name); err != nil {
			return err
		}
	}
	in, err := open(have)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := into.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, files.FilePerm)
	if err != nil {
		return err
	}
	return errors.Join(copyTold(ctx, out, in, nil), out.Close())
}

// clearOthers removes what is below a root and not among the wanted.
func clearOthers[V any](into *os.Root, wanted map[string]V) error {
	var others []string
	err := fs.WalkDir(into.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		if _, is := wanted[name]; !is {
			others = append(others, name)
		}
		return nil
	})
	for _, name := range others {
		err = errors.Join(err, into.Remove(name))
	}
	return err
}

// skipping reads a file and skips a long way by opening it anew further on, so that of a tar only
// what is wanted is sent.
type skipping struct {
	open func(offset int64) (reader, error)
	r    reader // nil: not opened yet
	at   int64
}

const longWay = 1 << 20

func (s *skipping) Read(b []byte) (n int, err error) {
	if s.r == nil {
		if s.r, err = s.open(s.at); err != nil {
			return 0, err
		}
	}
	n, err = s.r.Read(b)
	s.at += int64(n)
	return n, err
}

// Seek goes on from where it is, alone.
func (s *skipping) Seek(offset int64, whence int) (int64, error) {
	switch {
	case whence != io.SeekCurrent || offset < 0:
		return 0, errors.ErrUnsupported
	case offset < longWay:
		_, err := io.CopyN(io.Discard, s, offset)
		return s.at, err
	}
	s.at += offset
	return s.at, s.Close()
}

// Close ends the reading.
func (s *skipping) Close() error {
	if s.r == nil {
		return nil
	}
	r := s.r
	s.r = nil
	return r.Close()
}

// unpack writes the files of a tar below a root, and skips those that are there.
func (t *tarTarget) unpack(ctx context.Context, at string, into *os.Root) (err error) {
	in := &skipping{open: func(offset int64) (reader, error) { return t.b.open(ctx, at, offset) }}
	defer func() { err = errors.Join(err, in.Close()) }()
	there := map[string]bool{}
	err = walkTar(ctx, in, nil, func(name string, size int64, r io.Reader) error {
		there[name] = true
		return keep(ctx, into, name, size, func(offset int64) (reader, error) {
			_, err := io.CopyN(io.Discard, r, offset)
			return io.NopCloser(r), err
		})
	})
	if err != nil {
		return err
	}
	return clearOthers(into, there)
}

// longEnough wants a tar to be as long as its files are, with a block before each and two at the end.
func (t *tarTarget) longEnough(ctx context.Context, at string, c layout.DepositCopy) error {
	least := c.Bytes + tarBlock*int64(c.Files+2)
	return t.b.list(ctx, path.Dir(at), false, func(name string, size int64) error {
		if name == path.Base(at) && (size < least || size%tarBlock != 0) {
			return damage("its length is %d bytes, which is none of the tar that was written", size)
		}
		return nil
	})
}

// torn makes damage of a tar that ends early or cannot be read.
func torn(err error) error {
	if down := (*Down)(nil); errors.As(err, &down) { // the connection was cut
		return err
	}
	if errors.Is(err, tar.ErrHeader) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &Damage{Text: "the tar is not as it was written: " + err.Error()}
	}
	return err
}

// TarDigest is the digest of the tar that a bag is as a copy at a place.
func TarDigest(ctx context.Context, item layout.ItemID, place, dir string) (string, error) {
	at, err := layout.DecodePath(place)
	if err != nil {
		return "", err
	}
	packed, err := newTarBag(ctx, Bag{Item: item, Dir: dir}, at)
	if err != nil {
		return "", err
	}
	h := files.SHA512.New()
	if err := packed.write(h); err != nil {
		return "", err
	}
	return "sha512:" + hex.EncodeToString(h.Sum(nil)), ctx.Err()
}

// Kept is a copy on a target.
type Kept struct {
	Target
	Copy layout.DepositCopy
}

// Gather writes a bag into to, an empty folder, out of copies of it that may be damaged in different files: each file from the
// first that has it as the bag's manifests say, which the tag manifests vouch for, and for those digest. Copies that are no bag
// and no OCFL version are passed over. Nothing is synced, and the bag not validated. Errors: *Damage where a file is sound in none;
// *Down where it may be in one that cannot be asked; of writing into to.
func Gather(ctx context.Context, from []Kept, digest, to string) (err error) {
	var all []pieces
	var away error
	defer func() {
		if wrong := (*Damage)(nil); errors.As(err, &wrong) && away != nil {
			err = away
		}
	}()
	for _, k := range from {
		p, err := piecesOf(ctx, k)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if down := (*Down)(nil); errors.As(err, &down) {
			away = err
		}
		if err == nil {
			all = append(all, p)
		}
	}
	into, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, into.Close()) }()
	own, err := vouched(ctx, all, digest)
	if err != nil {
		return err
	}
	a, sums, err := own.sums()
	if err != nil {
		return err
	}
	for name := range own {
		sums[name] = own.want(a, sums, name)
	}
	for _, name := range sortedKeys(sums) {
		is := false
		for i := 0; err == nil && !is && i < len(all); i++ {
			is, err = all[i].take(ctx, into, name, a, sums[name])
			if down := (*Down)(nil); errors.As(err, &down) && ctx.Err() == nil {
				away, all[i].at, err = err, nil, nil // others may have it
			}
		}
		if err == nil && !is {
			err = damage("%s is sound in no copy", layout.EncodePath(name))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Object gives what Gather takes for copies of an item's bag: its object where it stands, a folder or a file, whose files are
// those of the payload; and as a bag, whose payload alone they are.
func Object(at string) []Kept {
	b := &folder{dir: filepath.Dir(at)}
	return []Kept{{Target: &object{b: b, name: filepath.Base(at), below: "data/"}}, {Target: &object{b: b, name: filepath.Base(at)}}}
}

// object is of the methods of a target none.
type object struct {
	Target
	b           *folder
	name, below string
}

func (o *object) pieces(ctx context.Context) (p pieces, err error) {
	info, err := os.Stat(filepath.Join(o.b.dir, o.name))
	if err != nil {
		return p, err
	}
	p.b, p.at = o.b, map[string]string{}
	if !info.IsDir() {
		p.at[o.below+o.name] = o.name
		return p, nil
	}
	return p, o.b.list(ctx, o.name, true, func(name string, _ int64) error {
		p.at[o.below+name] = path.Join(o.name, name)
		return nil
	})
}

// pieces are the files of a copy: where each stands on the backend, by its name in the bag.
type pieces struct {
	b  backend
	at map[string]string
}

func piecesOf(ctx context.Context, k Kept) (p pieces, err error) {
	if o, is := k.Target.(*object); is {
		return o.pieces(ctx)
	}
	dir, err := layout.DecodePath(k.Copy.Place)
	if err != nil {
		return p, err
	}
	p.at = map[string]string{}
	switch t := k.Target.(type) {
	case *bagTarget:
		p.b = t.b
		return p, t.b.list(ctx, dir, true, func(name string, _ int64) error {
			p.at[name] = path.Join(dir, name)
			return nil
		})
	case *ocflTarget:
		p.b = t.b
		have, _, err := readInventory(ctx, t.b, dir)
		if wrong := (*Damage)(nil); errors.As(err, &wrong) || errors.Is(err, fs.ErrNotExist) {
			have, _, err = readInventory(ctx, t.b, path.Join(dir, k.Copy.State))
		}
		if err != nil {
			return p, err
		}
		state, err := have.state(k.Copy.State)
		for _, f := range state {
			p.at[f.name] = path.Join(dir, f.at)
		}
		return p, err
	}
	return p, errors.ErrUnsupported
}

// vouched gives the tag manifests that have a digest, from the first copy in which they are sound, and the payload manifests that
// they vouch for.
func vouched(ctx context.Context, all []pieces, digest string) (vouchers, error) {
	for _, p := range all {
		own := vouchers{}
		for name := range p.at {
			if !isTagManifest(name) {
				continue
			}
			if data, err := readAll(ctx, p.b, p.at[name]); err == nil {
				own[name] = data
			}
		}
		if own.digest() != digest {
			continue
		}
		for _, a := range strongest {
			sums, payload := map[string][]byte{}, "manifest-"+string(a)+".txt"
			for line := range strings.Lines(string(own["tagmanifest-"+string(a)+".txt"])) {
				if err := readSum(strings.TrimRight(line, "\r\n"), a, sums); err != nil {
					return nil, err
				}
			}
			for i := 0; sums[payload] != nil && own[payload] == nil && i < len(all); i++ {
				if data, err := readAll(ctx, all[i].b, all[i].at[payload]); err == nil && bytes.Equal(digestOf(a, data), sums[payload]) {
					own[payload] = data
				}
			}
		}
		return own, ctx.Err()
	}
	return nil, damage("the tag manifests are sound in no copy")
}

// take writes a file below a root if the copy has it with a digest. What cannot be read is had from another copy; an error is of
// what cannot be written, or *Down.
func (p pieces) take(ctx context.Context, into *os.Root, name string, a files.Algorithm, want []byte) (is bool, err error) {
	at, there := p.at[name]
	if !there || !filepath.IsLocal(filepath.FromSlash(name)) {
		return false, nil
	}
	in, err := p.b.open(ctx, at, 0)
	if err != nil {
		return false, unreadable(ctx, err)
	}
	defer in.Close() //nolint:errcheck // opened for reading
	if err := into.MkdirAll(path.Dir(name), 0o755); err != nil {
		return false, err
	}
	f, err := into.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, files.FilePerm)
	if err != nil {
		return false, err
	}
	out, h := &writing{Writer: f}, a.New()
	err = copyTold(ctx, io.MultiWriter(out, h), in, nil)
	if wrote := errors.Join(out.err, f.Close()); wrote != nil {
		return false, errors.Join(wrote, into.Remove(name))
	}
	if err == nil && bytes.Equal(h.Sum(nil), want) {
		return true, nil
	}
	return false, errors.Join(unreadable(ctx, err), into.Remove(name))
}

// unreadable leaves of an error of reading what is not the copy's own.
func unreadable(ctx context.Context, err error) error {
	if down := (*Down)(nil); errors.As(err, &down) || ctx.Err() != nil {
		return errors.Join(err, ctx.Err())
	}
	return nil
}

// writing keeps the error of a writer, which a copy tells together with those of its reader.
type writing struct {
	io.Writer
	err error
}

func (w *writing) Write(b []byte) (int, error) {
	n, err := w.Writer.Write(b)
	w.err = errors.Join(w.err, err)
	return n, err
}
