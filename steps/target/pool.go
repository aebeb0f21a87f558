package target

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"bagpipe/layout"
	"bagpipe/layout/disk"
)

// Pool keeps targets open between deposits. Its zero value has none.
type Pool struct {
	Now   func() time.Time
	Notes string // a folder for what targets cannot do, as they were opened last; "": none is kept
	// Used tells whether copies were made on a target: its folder, if it is not there, is then not
	// made. nil: none were.
	Used func(layout.Name) (bool, error)

	mu   sync.Mutex // guards open
	open map[string]pooled
}

type pooled struct {
	Target
	config Config
}

// Take gives the target of a name, opened as configured; it stays the pool's.
func (p *Pool) Take(name layout.Name, c Config) (Target, error) { return p.take(string(name), name, c) }

func (p *Pool) take(key string, name layout.Name, c Config) (Target, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t, is := p.open[key]; is && t.config == c && (c.Kind != KindFolder || marked(c.Path)) { // a disk may have gone since
		return t.Target, nil
	}
	t, err := openUsed(name, c, p.Now, func() (bool, error) {
		if p.Used == nil {
			return false, nil
		}
		return p.Used(name)
	})
	if err != nil {
		return nil, err
	}
	if p.Notes != "" && key == string(name) {
		p.note(name, t.Poor())
	}
	if p.open == nil {
		p.open = map[string]pooled{}
	}
	p.open[key] = pooled{t, c} // one of other settings may be in use still; it ends with the program
	return t, nil
}

// note keeps what a target cannot do, for who asks without opening it. It is a cache: an error is
// no one's.
func (p *Pool) note(name layout.Name, poor []string) {
	at := filepath.Join(p.Notes, string(name))
	text := strings.Join(poor, "\n")
	if old, err := os.ReadFile(at); err == nil && string(old) == text || err != nil && text == "" {
		return
	}
	if disk.MkdirAll(p.Notes, 0o750) == nil {
		_ = disk.WriteFile(at, []byte(text), 0o640)
	}
}

// ReadNotes gives what targets cannot do, by their names, as a pool kept it.
func ReadNotes(dir string) map[layout.Name][]string {
	all := map[layout.Name][]string{}
	entries, _ := os.ReadDir(dir) // none: nothing is known
	for _, e := range entries {
		if text, err := os.ReadFile(filepath.Join(dir, e.Name())); err == nil && len(text) > 0 {
			all[layout.Name(e.Name())] = strings.Split(string(text), "\n")
		}
	}
	return all
}

// Looking gives the target of a name for looks at its copies, no faster than its fixity: rate:.
func (p *Pool) Looking(name layout.Name, c Config) (Target, error) {
	if c.Fixity.Rate == 0 {
		return p.Take(name, c)
	}
	c.Rate = c.Fixity.Rate
	return p.take(string(name)+" looking", name, c)
}

// Close closes all targets.
func (p *Pool) Close() (err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, t := range p.open {
		err = errors.Join(err, t.Close())
		delete(p.open, key)
	}
	return err
}
