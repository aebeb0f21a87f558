package main

import (
	"crypto/sha512"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// floor hashes every file with nothing around it.
func floor(dir string) (sample, error) {
	var before, after syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &before); err != nil {
		return sample{}, err
	}
	start := time.Now()
	var files []string
	err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, p)
		}
		return err
	})
	if err != nil {
		return sample{}, err
	}
	errs := make([]error, runtime.GOMAXPROCS(0))
	var next atomic.Int64
	var g sync.WaitGroup
	for w := range errs {
		g.Go(func() {
			buf, h := make([]byte, 256<<10), sha512.New()
			for i := next.Add(1) - 1; i < int64(len(files)) && errs[w] == nil; i = next.Add(1) - 1 {
				f, err := os.Open(files[i])
				if err == nil {
					h.Reset()
					_, err = io.CopyBuffer(struct{ io.Writer }{h}, struct{ io.Reader }{f}, buf)
					err = errors.Join(err, f.Close())
				}
				errs[w] = err
			}
		})
	}
	g.Wait()
	wall := time.Since(start)
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &after); err != nil {
		return sample{}, err
	}
	return sample{wall: wall, cpu: cpu(after) - cpu(before)}, errors.Join(errs...)
}
