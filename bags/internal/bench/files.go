package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// shape is one set of files.
type shape struct{ files, size int }

// block is how much is written at once: a process begins with the peak memory of
// the one that starts it.
const block = 64 << 10

// write makes the files, of bytes that do not compress and differ.
func (s shape) write(dir string) error { return s.fill(dir, "bin", func(b byte) byte { return b }) }

// writeText makes them of text, which compresses about three to one.
func (s shape) writeText(dir string) error {
	const letters = "aaaaaaeeeeetttinos rhl"
	return s.fill(dir, "txt", func(b byte) byte { return letters[int(b)%len(letters)] })
}

func (s shape) fill(dir, ending string, letter func(byte) byte) error {
	x := uint64(88172645463325252)
	buf := make([]byte, block)
	for i := range s.files {
		sub := filepath.Join(dir, fmt.Sprintf("%03d", i/200))
		if err := os.MkdirAll(sub, 0o755); err != nil {
			return err
		}
		if err := s.fillOne(filepath.Join(sub, fmt.Sprintf("%06d.%s", i, ending)), buf, &x, letter); err != nil {
			return err
		}
	}
	return nil
}

func (s shape) fillOne(path string, buf []byte, x *uint64, letter func(byte) byte) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for left := s.size; left > 0; left -= len(buf) {
		buf = buf[:min(left, len(buf))]
		for k := 0; k < len(buf); k += 8 {
			*x ^= *x << 13
			*x ^= *x >> 7
			*x ^= *x << 17
			for b := range min(8, len(buf)-k) {
				buf[k+b] = letter(byte(*x >> (8 * b)))
			}
		}
		if _, err := f.Write(buf); err != nil {
			return err
		}
	}
	return nil
}
