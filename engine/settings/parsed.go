package settings

import (
	"bytes"
	"sync"
)

// parsedFiles keeps of each settings file what it was parsed to last: that takes
// milliseconds, and every look at the settings asks again.
type parsedFiles struct {
	mu     sync.Mutex // guards byPath
	byPath map[string]parsedFile
}

type parsedFile struct {
	data []byte
	part any
	err  error
}

// read answers with what the file was parsed to last, when it still reads so; parse is
// asked otherwise, of several files side by side.
func (c *parsedFiles) read(p string, data []byte, parse func(p string, data []byte) (any, error)) (any, error) {
	c.mu.Lock()
	last, ok := c.byPath[p]
	c.mu.Unlock()
	if ok && bytes.Equal(last.data, data) {
		return last.part, last.err
	}
	part, err := parse(p, data)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byPath == nil {
		c.byPath = map[string]parsedFile{}
	}
	c.byPath[p] = parsedFile{bytes.Clone(data), part, err}
	return part, err
}
