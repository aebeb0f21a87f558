package engine

import (
	"fmt"
	"time"

	"bagpipe/layout/disk"
)

// lowSpace is why nothing may be taken in or started, or nil. The answer is a
// second old at most: it is asked for every step.
func (e *Engine) lowSpace() error {
	const fresh = time.Second
	e.space.mu.Lock()
	defer e.space.mu.Unlock()
	now := e.o.Now()
	if age := now.Sub(e.space.at); !e.space.at.IsZero() && age >= 0 && age < fresh {
		return e.space.err
	}
	e.space.at, e.space.err = now, e.lookForSpace()
	return e.space.err
}

func (e *Engine) lookForSpace() error {
	free, err := disk.Free(e.root)
	if err != nil {
		return err
	}
	if least := e.current().settings.free(); free < least {
		return fmt.Errorf("paused: %s free in %s, less than limits: free: %s in bagpipe.yaml; nothing is taken in or started until there is room", size(free), e.root, size(least))
	}
	return nil
}

func size(n uint64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	v, i := float64(n)/unit, 0
	for v >= unit && i < 4 {
		v, i = v/unit, i+1
	}
	return fmt.Sprintf("%.1f %ciB", v, "KMGTP"[i])
}
