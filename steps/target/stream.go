package target

import (
	"bytes"
	"context"
	"errors"
	"io"

	"bagpipe/bags/files"
)

type reader = io.ReadCloser

// told wraps a reader so that the bytes read are told.
func told(r reader, err error) func(func(int64)) (io.ReadCloser, error) {
	return func(tell func(int64)) (io.ReadCloser, error) {
		if err != nil || tell == nil {
			return r, err
		}
		return &telling{r, tell}, nil
	}
}

type telling struct {
	reader
	tell func(int64)
}

func (t *telling) Read(b []byte) (int, error) {
	n, err := t.reader.Read(b)
	t.tell(int64(n))
	return n, err
}

// copyTold copies, telling of what went, until ctx ends.
func copyTold(ctx context.Context, to io.Writer, from io.Reader, tell func(int64)) error {
	buffer := make([]byte, files.CopyBuffer)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := from.Read(buffer)
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return err
			}
			if tell != nil {
				tell(int64(n))
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// hashed has what is sent of a file digested on its way to a store that vouches. ok reports, after the
// write, that the store vouched for bytes of the digest want.
func hashed(to backend, f file, a files.Algorithm, want []byte) (_ file, ok func() bool) {
	if !to.traits().vouches {
		return f, func() bool { return false }
	}
	h, whole, vouched := a.New(), true, false
	open := f.open
	f.open = func(offset int64) (reader, error) {
		r, err := open(offset)
		if err != nil {
			return r, err
		}
		h.Reset()
		whole = offset == 0
		return &reading{r, func(b []byte) (int, error) {
			n, err := r.Read(b)
			h.Write(b[:n])
			return n, err
		}}, nil
	}
	f.vouch = func() { vouched = true }
	return f, func() bool { return vouched && whole && bytes.Equal(h.Sum(nil), want) }
}

// teller is told of the bytes written to it.
type teller func(int64)

func (t teller) Write(b []byte) (int, error) {
	if t != nil {
		t(int64(len(b)))
	}
	return len(b), nil
}

// errEnough ends a walk early.
var errEnough = errors.New("enough")

// reading reads by a function of one transfer.
type reading struct {
	reader
	read func([]byte) (int, error)
}

func (r *reading) Read(b []byte) (int, error) { return r.read(b) }

// counter counts what is written.
type counter int64

func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}
