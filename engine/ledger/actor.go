package ledger

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"bagpipe/engine/fault"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/mounted"
	"bagpipe/layout"
	"bagpipe/layout/disk"
)

// CheckMounted answers a *mounted.Error when the workspace's folders are not there. A clone in
// which the first items of others have not been shown yet is whole.
func (l *Ledger) CheckMounted() error {
	v, err := gitstore.Shown(l.Store)
	if err != nil {
		return err
	}
	names, err := itemFolders(v)
	if err != nil {
		return err
	}
	return mounted.Folders(l.Root, names)
}

// MakeItemFolders makes the folders of items/ that a commit of others has, before the branch
// moves there: without one a killed process would leave what looks like a missing mount.
func MakeItemFolders(l *Ledger, commit gitstore.Hash) error {
	v, err := l.Store.At(commit)
	if err != nil {
		return err
	}
	names, err := itemFolders(v)
	for _, name := range names {
		err = errors.Join(err, disk.MkdirAll(l.Path(layout.ItemsDir+"/"+name), 0o750))
	}
	return err
}

// itemFolders are the names in items/.
func itemFolders(v gitstore.View) ([]string, error) {
	entries, err := v.List(layout.ItemsDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	names := make([]string, 0, len(entries))
	for _, entry := range entries {
		names = append(names, entry.Name)
	}
	return names, nil
}

// Foreign says that the workspace belongs to another account than the one that acts: what
// this one would write there, that one could not change or remove.
type Foreign struct {
	Root    string
	Account string // that it belongs to
}

func (f *Foreign) Error() string {
	return fmt.Sprintf("this workspace belongs to %s, and only %s may change it", f.Account, f.Account)
}

// FaultKind is always fault.Refused.
func (f *Foreign) FaultKind() fault.Kind { return fault.Refused }

// FaultRemedies is the way to act as the workspace's account.
func (f *Foreign) FaultRemedies() []fault.Remedy {
	return []fault.Remedy{{Verb: fault.ActAs, Name: f.Root, Account: f.Account}}
}

// CheckOwner answers a *Foreign where the repository is not this account's.
func (l *Ledger) CheckOwner() error { return CheckOwner(l.Root) }

// CheckOwner answers a *Foreign where the repository of the workspace root is not this account's.
func CheckOwner(root string) error {
	account, err := disk.ForeignOwner(filepath.Join(root, layout.RepositoryDir))
	if err != nil || account == "" {
		return err
	}
	return &Foreign{root, account}
}

// How this program signs its commits.
const (
	CommitterName  = "Bagpipe"
	CommitterEmail = "bagpipe@"
)

// ByBagpipe reports whether a commit says that a Bagpipe made it, which proves nothing.
func ByBagpipe(c gitstore.Commit) bool {
	return c.Committer.Name == CommitterName && strings.HasPrefix(c.Committer.Email, CommitterEmail)
}

// Runner names this process in attempts.
func (l *Ledger) Runner() string { return l.runner }

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
