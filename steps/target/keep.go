package target

import (
	"context"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

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
