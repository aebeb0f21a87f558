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

// parse reads and checks one settings file; its errors are *layout.FileError. What it
// answers with is read by many, and changed by nobody.
func (k *checker) parse(p string, data []byte) (any, error) {
	c := &k.parsed
	c.mu.Lock()
	defer c.mu.Unlock()
	if last, ok := c.byPath[p]; ok && bytes.Equal(last.data, data) {
		return last.part, last.err
	}
	if c.byPath == nil {
		c.byPath = map[string]parsedFile{}
	}
	part, err := k.parseAnew(p, data)
	c.byPath[p] = parsedFile{bytes.Clone(data), part, err}
	return part, err
}

func (k *checker) parseRules(p string, data []byte) (*RuleFile, error) {
	part, err := k.parse(p, data)
	if err != nil {
		return nil, err
	}
	return part.(*RuleFile), nil
}
