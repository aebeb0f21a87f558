package main

import (
	"io"
	"sync"
)

// output is standard output that remembers its first error: most of what is
// printed is printed without asking, and a report that was cut off by a full disk
// must not end with exit code 0.
type output struct {
	w io.Writer

	mu  sync.Mutex // guards err
	err error
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.w.Write(p)
	if err != nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.err == nil {
			o.err = err
		}
	}
	return n, err
}

func (o *output) failure() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}
