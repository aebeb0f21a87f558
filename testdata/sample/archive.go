package sample

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io"

	"github.com/klauspost/compress/zstd"
)

// top is the folder that the archives hold.
const top = "letters/"

func zipped(path string) error {
	all, err := material()
	if err != nil {
		return err
	}
	return writeZip(path, under(top, all))
}

func notUTF8Zip(path string) error {
	return writeZip(path, []entry{{"plain.txt", []byte("plain\n")}, {latin1Name, []byte("a name from an old disk\n")}})
}

func under(prefix string, all []entry) []entry {
	out := make([]entry, len(all))
	for i, e := range all {
		out[i] = entry{prefix + e.path, e.data}
	}
	return out
}

func writeZip(path string, all []entry) error {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range all {
		f, err := w.CreateHeader(&zip.FileHeader{Name: e.path, Method: zip.Deflate, Modified: made})
		if err != nil {
			return err
		}
		if _, err := f.Write(e.data); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return writeFile(path, b.Bytes())
}

// A wrapper compresses what is written to it.
type wrapper func(io.Writer) (io.WriteCloser, error)

func plain(w io.Writer) (io.WriteCloser, error)     { return nopCloser{w}, nil }
func gzipped(w io.Writer) (io.WriteCloser, error)   { return gzip.NewWriter(w), nil }
func zstandard(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) }

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

func tarred(wrap wrapper) func(string) error {
	return func(path string) error {
		data, err := tarOfMaterial(wrap)
		if err != nil {
			return err
		}
		return writeFile(path, data)
	}
}

func tarOfMaterial(wrap wrapper) ([]byte, error) {
	all, err := material()
	if err != nil {
		return nil, err
	}
	var headers []member
	for _, e := range under(top, all) {
		headers = append(headers, member{tar.Header{Typeflag: tar.TypeReg, Name: e.path}, e.data})
	}
	return makeTar(headers, wrap)
}

// member is one member of a tar.
type member struct {
	head tar.Header
	data []byte
}

func makeTar(members []member, wrap wrapper) (_ []byte, err error) {
	var b bytes.Buffer
	c, err := wrap(&b)
	if err != nil {
		return nil, err
	}
	w := tar.NewWriter(c)
	for _, m := range members {
		m.head.Size, m.head.ModTime, m.head.Mode = int64(len(m.data)), made, 0o644
		if err := w.WriteHeader(&m.head); err != nil {
			return nil, err
		}
		if _, err := w.Write(m.data); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(w.Close(), c.Close()); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
