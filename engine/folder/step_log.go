package folder

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
)

// StepLog is an attempt's log. Its file is made with the first byte, as most steps say
// nothing; its end is kept for the record of a failure. Of one that says more than maxLog
// the rest is not kept. A nil log keeps nothing.
type StepLog struct {
	path string

	mu   sync.Mutex // guards the rest
	file *os.File
	last []byte
	size int // what was said, also beyond maxLog
}

const (
	tailSize = 2000
	maxLog   = 64 << 20
	cutLog   = "\n… the log is cut here, at 64 MiB\n"
)

func NewStepLog(path string) *StepLog { return &StepLog{path: path} }

// Write appends to the log.
func (l *StepLog) Write(p []byte) (int, error) {
	if l == nil {
		return len(p), nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		if err := os.MkdirAll(filepath.Dir(l.path), 0o777); err != nil {
			return 0, err
		}
		f, err := os.OpenFile(l.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666)
		if err != nil {
			return 0, err
		}
		l.file = f
	}
	l.last = append(l.last, p...)
	if over := len(l.last) - tailSize; over > 0 {
		l.last = append(l.last[:0], l.last[over:]...)
	}
	return len(p), l.keep(p)
}

// keep writes what fits below maxLog.
func (l *StepLog) keep(p []byte) error {
	left := maxLog - l.size
	l.size += len(p)
	if left < 0 {
		return nil
	}
	if len(p) > left {
		p = append(p[:left:left], cutLog...)
	}
	_, err := l.file.Write(p)
	return err
}

// Close syncs the file.
func (l *StepLog) Close() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	f := l.file
	l.file = nil
	return errors.Join(f.Sync(), f.Close())
}

// Tail is the end of the log.
func (l *StepLog) Tail() string {
	if l == nil {
		return ""
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.last)
}
