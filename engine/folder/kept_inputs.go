package folder

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"bagpipe/layout"
)

// The rules are: what an attempt at a step with keepInputs was given is copied
// before its robot starts, synced, and put in its place by one rename:
//
//	items/3/f/a/9/ID/inputs/STEP.ATTEMPT/call.json        keptCall: schema, names, how the step is done, environment
//	                                     manifest.json    as the robot got it; so inventory.json and execution.json
//	                                     source/ content/ derived/    copies
//
// They are copies, not hard links: a robot may write into what it was given, and
// then the kept input must not change. Files are copied by the system's own means
// (os.File.ReadFrom), which share the blocks where the file system can. A crash
// leaves .STEP.ATTEMPT.tmp, which the step's next attempt removes; it holds the
// step's claim. Nothing here is ever removed by Bagpipe, and none of it is in
// .bagpipe, as it may be the only trace of a fault.

const (
	CallJSON   = "call.json"
	CallSchema = 1
)

// KeptCall is call.json. It is readable by its owner alone, as environments hold
// secrets.
type KeptCall struct {
	Schema      int            `json:"schema"`
	Item        layout.ItemID  `json:"item"`
	Collection  layout.Name    `json:"collection"`
	Label       string         `json:"label"`
	Workflow    string         `json:"workflow"`
	Step        layout.Name    `json:"step"`
	Attempt     string         `json:"attempt"`
	Robot       string         `json:"robot,omitempty"`
	Command     []string       `json:"command,omitempty"` // as in the definition
	Persistent  bool           `json:"persistent,omitempty"`
	With        map[string]any `json:"with"`
	SourceKind  string         `json:"sourceKind"`
	Environment []string       `json:"environment"` // of the engine; the step's own is added to it
}

// ForgetHalfKept removes what a crash left of the step's earlier attempts.
func ForgetHalfKept(inputs string, step layout.Name) error {
	entries, err := os.ReadDir(inputs)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		half, isTmp := strings.CutSuffix(strings.TrimPrefix(entry.Name(), "."), ".tmp")
		if !isTmp || half == entry.Name() {
			continue
		}
		if of, _, ok := SplitKept(half); ok && of == step {
			if err := os.RemoveAll(filepath.Join(inputs, entry.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// SplitKept reads STEP.ATTEMPT; a step's name may hold dots.
func SplitKept(name string) (step layout.Name, k layout.AttemptKey, ok bool) {
	i := strings.LastIndexByte(name, '.')
	if i < 1 {
		return "", k, false
	}
	k, err := layout.ParseAttemptKey(name[i+1:])
	return layout.Name(name[:i]), k, err == nil
}

// CopyFolders copies those of the named folders that are there.
func CopyFolders(from, to string, names ...string) error {
	for _, name := range names {
		err := copyTree(filepath.Join(from, name), filepath.Join(to, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// copyTree copies folders, files and links as they are, with their permissions
// and the times of files. What is none of these is passed over: no item holds it.
func copyTree(from, to string) error {
	info, err := os.Lstat(from)
	if err != nil {
		return err
	}
	switch {
	case info.IsDir():
		if err := os.Mkdir(to, 0o700); err != nil {
			return err
		}
		entries, err := os.ReadDir(from)
		if err != nil {
			return err
		}
		for _, entry := range entries {
			if err := copyTree(filepath.Join(from, entry.Name()), filepath.Join(to, entry.Name())); err != nil {
				return err
			}
		}
		return os.Chmod(to, info.Mode().Perm()|0o700)
	case info.Mode().IsRegular():
		return copyFile(from, to, info)
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	}
	return nil
}

func copyFile(from, to string, info fs.FileInfo) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm()|0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, out.Close()); err == nil {
			err = os.Chtimes(to, info.ModTime(), info.ModTime())
		}
	}()
	_, err = io.Copy(out, in)
	return err
}

// ReadKept reads call.json of kept inputs.
func ReadKept(dir string) (k KeptCall, err error) {
	data, err := os.ReadFile(filepath.Join(dir, CallJSON))
	if err != nil {
		return k, err
	}
	if err := json.Unmarshal(data, &k); err != nil {
		return k, fmt.Errorf("read %s: %w", CallJSON, err)
	}
	if k.Schema > CallSchema {
		return k, &layout.SchemaError{File: CallJSON, Schema: k.Schema, Known: CallSchema}
	}
	return k, nil
}
