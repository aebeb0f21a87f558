package remote

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"os"

	"bagpipe/engine/fault"
	"bagpipe/engine/remote/wire"
	"bagpipe/layout"
)

// ServeFile sends a file of the item, or the range of it that is asked for.
func (r Claimants) ServeFile(w http.ResponseWriter, q *http.Request, account string, h wire.Held, path string) error {
	l, err := r.held(account, h)
	if err != nil {
		return err
	}
	if _, err := r.prepared(q.Context(), l); err != nil {
		return err
	}
	rel, err := sendablePath(path)
	if err != nil {
		return fault.New(fault.Invalid, err.Error())
	}
	root, err := transfer(r).itemRoot(l)
	if err != nil {
		return err
	}
	defer root.Close()
	f, info, err := openPlain(root, rel)
	if err != nil {
		return fault.New(fault.NotFound, err.Error())
	}
	defer f.Close()
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(w, q, "", info.ModTime(), f)
	return nil
}

// Put takes a part of a file that the robot made. What the file has behind the offset is
// replaced, so that a part may come again of which half came, or the answer was lost. A part whose digest is another than the one given is taken back.
func (r Claimants) Put(ctx context.Context, account string, h wire.Held, path string, offset int64, digest string, body io.Reader) error {
	l, err := r.held(account, h)
	if err != nil {
		return err
	}
	if _, err := r.prepared(ctx, l); err != nil {
		return err
	}
	p, err := layout.DecodePath(path)
	if err != nil {
		return fault.New(fault.Invalid, err.Error())
	}
	rel, err := layout.ParseRelPath(p)
	if err != nil {
		return fault.New(fault.Invalid, err.Error())
	}
	want, err := wire.ContentDigest(digest)
	if err != nil {
		return err
	}
	if why := r.rooms.Room(); why != nil {
		return fault.New(fault.Busy, why.Error())
	}
	root, err := os.OpenRoot(l.work.Scratch())
	if err != nil {
		return errNotCurrent()
	}
	defer root.Close()
	if err := r.writing(l, func() error { return cutAt(root, string(rel), offset) }); err != nil {
		return ended(err)
	}
	in := &summed{from: body, sum: sha256.New()}
	if _, err := appendPart(&r.table, l, root, string(rel), offset, in); err != nil {
		if ctx.Err() != nil {
			return err
		}
		return fault.New(fault.Refused, err.Error())
	}
	if string(in.sum.Sum(nil)) == string(want) {
		return nil
	}
	bad := fault.New(fault.Invalid, fmt.Sprintf("the bytes of %s are not those of Content-Digest", path))
	return errors.Join(bad, r.writing(l, func() error { return cutAt(root, string(rel), offset) }))
}

// ended words an error of writing for a program over HTTP.
func ended(err error) error {
	if errors.Is(err, errEnding) {
		return errNotCurrent()
	}
	return err
}

// cutAt takes back what a file has behind an offset.
func cutAt(root *os.Root, rel string, offset int64) error {
	info, err := root.Lstat(rel)
	if err != nil || !info.Mode().IsRegular() || info.Size() <= offset {
		return nil // appending tells what is wrong
	}
	f, err := root.OpenFile(rel, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(offset), f.Close())
}

// summed sums what is read.
type summed struct {
	from io.Reader
	sum  hash.Hash
}

func (s *summed) Read(p []byte) (int, error) {
	n, err := s.from.Read(p)
	_, _ = s.sum.Write(p[:n]) // a hash takes all
	return n, err
}
