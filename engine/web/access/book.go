package access

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"bagpipe/layout"
	"bagpipe/layout/disk"
)

const schema = 1

// Book is the accounts of one workspace.
type Book struct {
	dir   string
	turns chan struct{} // passwords being hashed

	mu   sync.Mutex // guards what was read last
	read map[string]cached
}

type cached struct {
	changed time.Time
	size    int64
	value   any
}

// Open gives the accounts of the workspace at root; there may be none yet.
func Open(root string) *Book {
	return &Book{dir: filepath.Join(root, layout.AccessDir), turns: make(chan struct{}, 2), read: map[string]cached{}}
}

type usersFile struct {
	Schema int             `json:"schema"`
	Users  map[string]User `json:"users"`
}

type tokensFile struct {
	Schema int              `json:"schema"`
	Tokens map[string]Token `json:"tokens"`
}

// Users are the accounts of people, by the names they sign in with.
func (b *Book) Users() (map[string]User, error) {
	f, err := load[usersFile](b, "users.json")
	return f.Users, err
}

// Tokens are the accounts of programs, by their identifiers.
func (b *Book) Tokens() (map[string]Token, error) {
	f, err := load[tokensFile](b, "tokens.json")
	return f.Tokens, err
}

// load reads a file, from memory while it has not changed.
func load[T any](b *Book, name string) (value T, err error) {
	path := filepath.Join(b.dir, name)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return value, nil
	}
	if err != nil {
		return value, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if c, ok := b.read[name]; ok && c.changed.Equal(info.ModTime()) && c.size == info.Size() {
		return c.value.(T), nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return value, err
	}
	if err := json.Unmarshal(data, &value); err != nil {
		return value, fmt.Errorf("read %s/%s: %w", layout.AccessDir, name, err)
	}
	var head struct{ Schema int }
	if err := json.Unmarshal(data, &head); err == nil && head.Schema > schema {
		return value, fmt.Errorf("read %s/%s: schema %d is newer than this program", layout.AccessDir, name, head.Schema)
	}
	b.read[name] = cached{info.ModTime(), info.Size(), value}
	return value, nil
}

// edit changes a file under the folder's lock.
func edit[T any](b *Book, name string, change func(*T) error) (err error) {
	if err := disk.MkdirAll(b.dir, 0o700); err != nil {
		return err
	}
	unlock, err := disk.LockDir(b.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	b.mu.Lock()
	delete(b.read, name) // two changes within the clock's resolution look alike
	b.mu.Unlock()
	value, err := load[T](b, name)
	if err != nil {
		return err
	}
	if err := change(&value); err != nil {
		return err
	}
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	if err := disk.WriteFile(filepath.Join(b.dir, name), append(data, '\n'), 0o600); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.read, name)
	return nil
}
