package screen

import (
	"io"
	"sync"
)

// Output is standard output that remembers its first error: most of what is
// printed is printed without asking, and a report that was cut off by a full disk
// must not end with exit code 0.
type Output struct {
	W io.Writer

	mu  sync.Mutex // guards err
	err error
}

func (o *Output) Write(p []byte) (int, error) {
	n, err := o.W.Write(p)
	if err != nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.err == nil {
			o.err = err
		}
	}
	return n, err
}

// Failure gives the first error.
func (o *Output) Failure() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}
