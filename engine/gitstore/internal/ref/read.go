package ref

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"bagpipe/engine/gitstore/internal/odb"
	"bagpipe/engine/gitstore/internal/repo"
)

const maxReads = 10

// Read gives where the branch points, zero when it does not exist. The loose file counts,
// then packed-refs. When neither names the branch, the loose file is looked for again: git
// pack-refs writes packed-refs before it removes the loose file, and another writer may
// make a new loose file right after.
func Read(r *repo.Repo) (odb.Hash, error) {
	for n := range maxReads {
		h, ok, err := readLoose(r)
		if errors.Is(err, errGarbled) {
			if n < maxReads-1 {
				time.Sleep(patience)
				continue
			}
			return odb.Hash{}, nil
		}
		if ok || err != nil {
			return h, err
		}
		h, err = readPacked(r)
		if err != nil {
			return odb.Hash{}, err
		}
		if !r.Exists(path(r)) {
			return h, nil
		}
	}
	return odb.Hash{}, fmt.Errorf("read %s: it comes and goes", r.Branch)
}

func path(r *repo.Repo) string { return filepath.Join(r.Git, filepath.FromSlash(r.Branch)) }

func readLoose(r *repo.Repo) (odb.Hash, bool, error) {
	data, err := r.FS.ReadFile(path(r))
	if errors.Is(err, fs.ErrNotExist) {
		return odb.Hash{}, false, nil
	}
	if err != nil {
		return odb.Hash{}, false, fmt.Errorf("read %s: %w", r.Branch, err)
	}
	h, err := odb.ParseHash(strings.TrimSpace(string(data)))
	if err != nil && strings.HasPrefix(string(data), "ref:") {
		return odb.Hash{}, false, fmt.Errorf("read %s: %w", path(r), err)
	}
	if err != nil { // being written in place, or of no use: then the branch counts as deleted
		return odb.Hash{}, false, errGarbled
	}
	return h, true, nil
}

// errGarbled is a branch's file that names no commit.
var errGarbled = errors.New("the branch's file names no commit")

// patience is how long a program that writes the branch's file in place may take.
const patience = 20 * time.Millisecond

func readPacked(r *repo.Repo) (odb.Hash, error) {
	data, err := r.FS.ReadFile(filepath.Join(r.Git, "packed-refs"))
	if errors.Is(err, fs.ErrNotExist) {
		return odb.Hash{}, nil
	}
	if err != nil {
		return odb.Hash{}, fmt.Errorf("read packed-refs: %w", err)
	}
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		if hex, name, _ := strings.Cut(lines.Text(), " "); name == r.Branch {
			return odb.ParseHash(hex)
		}
	}
	return odb.Hash{}, lines.Err()
}

// MendHead serves a repository restored from a bare one whose HEAD names a branch that
// never was (git init makes master by default): when that branch is not there and main is,
// HEAD is made to name main.
func MendHead(r *repo.Repo) error {
	named := r.Branch
	if h, err := Read(r); err == nil && !h.IsZero() || named == repo.InitialBranch {
		return nil
	}
	r.Branch = repo.InitialBranch
	if h, err := Read(r); err != nil || h.IsZero() {
		r.Branch = named // the store is empty, or main is not there either
		return nil
	}
	r.Log.Warn("HEAD named a branch that is not there; it names main again", "was", named)
	return r.SetHead(repo.InitialBranch)
}
