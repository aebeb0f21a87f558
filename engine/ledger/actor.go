package ledger

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"time"

	"bagpipe/engine/mounted"
	"bagpipe/layout"
)

// CheckMounted answers a *mounted.Error when the workspace's folders are not there.
func (l *Ledger) CheckMounted() error {
	v, err := l.Store.Tip()
	if err != nil {
		return err
	}
	entries, err := v.List(layout.ItemsDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	names := make([]string, 0, len(entries))
	for _, entry := range entries {
		names = append(names, entry.Name)
	}
	return mounted.Folders(l.Root, names)
}

// How this program signs its commits.
const (
	CommitterName  = "Bagpipe"
	CommitterEmail = "bagpipe@"
)

// Runner names this process in attempts.
func (l *Ledger) Runner() string {
	return fmt.Sprintf("%s:%d", l.Host.Name, l.Host.PID)
}

func (l *Ledger) IntentKey() (layout.IntentKey, error) {
	return layout.NewIntentKey(l.Now(), l.Random, l.ID)
}

// lockedReader lets goroutines share a source of randomness.
type lockedReader struct {
	mu sync.Mutex
	r  io.Reader
}

func (l *lockedReader) Read(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.r.Read(p)
}

const Resolution = time.Millisecond
