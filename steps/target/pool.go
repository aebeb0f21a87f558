package target

import (
	"errors"
	"sync"
	"time"

	"bagpipe/layout"
)

// Pool keeps targets open between deposits. Its zero value has none.
type Pool struct {
	Now func() time.Time

	mu   sync.Mutex // guards open
	open map[layout.Name]pooled
}

type pooled struct {
	Target
	config Config
}

// Take gives the target of a name, opened as configured; it stays the pool's.
func (p *Pool) Take(name layout.Name, c Config) (Target, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t, is := p.open[name]; is && t.config == c {
		return t.Target, nil
	}
	t, err := Open(name, c, p.Now)
	if err != nil {
		return nil, err
	}
	if p.open == nil {
		p.open = map[layout.Name]pooled{}
	}
	p.open[name] = pooled{t, c} // one of other settings may be in use still; it ends with the program
	return t, nil
}

// Close closes all targets.
func (p *Pool) Close() (err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, t := range p.open {
		err = errors.Join(err, t.Close())
		delete(p.open, name)
	}
	return err
}
