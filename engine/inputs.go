package engine

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
	"bagpipe/layout/disk"
	"bagpipe/steps"
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
	callJSON   = "call.json"
	callSchema = 1
)

// keptCall is call.json. It is readable by its owner alone, as environments hold
// secrets.
type keptCall struct {
	Schema      int            `json:"schema"`
	Item        layout.ItemID  `json:"item"`
	Collection  layout.Name    `json:"collection"`
	Label       string         `json:"label"`
	Workflow    string         `json:"workflow"`
	Step        layout.Name    `json:"step"`
	Attempt     string         `json:"attempt"`
	Robot       string         `json:"robot,omitempty"`
	Command     []string       `json:"command,omitempty"` // as in the definition
	With        map[string]any `json:"with"`
	SourceKind  string         `json:"sourceKind"`
	Environment []string       `json:"environment"` // of the engine; the step's own is added to it
}

// keepInputs saves what the robot is about to be given, if the step asks for it.
func (w *work) keepInputs(c *steps.Call) error {
	if !w.plan.KeepInputs {
		return nil
	}
	inputs := filepath.Join(c.Dir, layout.InputsDir)
	name := string(c.Step) + "." + c.Attempt.String()
	if err := disk.MkdirAll(inputs, 0o777); err != nil {
		return fmt.Errorf("keep the step's inputs: %w", err)
	}
	if err := forgetHalfKept(inputs, c.Step); err != nil {
		return fmt.Errorf("keep the step's inputs: %w", err)
	}
	tmp := filepath.Join(inputs, "."+name+".tmp")
	err := w.fillInputs(tmp, c)
	if err == nil {
		err = disk.SyncTree(tmp)
	}
	if err == nil {
		err = disk.Rename(tmp, filepath.Join(inputs, name))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("keep the step's inputs: %w", err), os.RemoveAll(tmp))
	}
	return nil
}

// forgetHalfKept removes what a crash left of the step's earlier attempts.
func forgetHalfKept(inputs string, step layout.Name) error {
	entries, err := os.ReadDir(inputs)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		half, isTmp := strings.CutSuffix(strings.TrimPrefix(entry.Name(), "."), ".tmp")
		if !isTmp || half == entry.Name() {
			continue
		}
		if of, _, ok := splitKept(half); ok && of == step {
			if err := os.RemoveAll(filepath.Join(inputs, entry.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// splitKept reads STEP.ATTEMPT; a step's name may hold dots.
func splitKept(name string) (step layout.Name, k layout.AttemptKey, ok bool) {
	i := strings.LastIndexByte(name, '.')
	if i < 1 {
		return "", k, false
	}
	k, err := layout.ParseAttemptKey(name[i+1:])
	return layout.Name(name[:i]), k, err == nil
}

func (w *work) fillInputs(dir string, c *steps.Call) error {
	if err := os.Mkdir(dir, 0o777); err != nil {
		return err
	}
	call, err := layout.EncodeJSON(keptCall{
		Schema: callSchema, Item: c.Item, Collection: c.Collection, Label: c.Label, Workflow: c.Workflow, Step: c.Step, Attempt: c.Attempt.String(),
		Robot: w.plan.Robot, Command: w.plan.Command, With: c.With, SourceKind: c.SourceKind, Environment: os.Environ(),
	})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, callJSON), call, 0o600); err != nil {
		return err
	}
	for name, data := range map[string][]byte{layout.ManifestJSON: c.Manifest, layout.InventoryJSON: c.Inventory, layout.ExecutionJSON: c.Execution} {
		if data == nil {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o666); err != nil {
			return err
		}
	}
	return copyFolders(c.Dir, dir, layout.SourceDir, layout.ContentDir, layout.DerivedDir)
}

// copyFolders copies those of the named folders that are there.
func copyFolders(from, to string, names ...string) error {
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

// readKept reads call.json of kept inputs.
func readKept(dir string) (k keptCall, err error) {
	data, err := os.ReadFile(filepath.Join(dir, callJSON))
	if err != nil {
		return k, err
	}
	if err := json.Unmarshal(data, &k); err != nil {
		return k, fmt.Errorf("read %s: %w", callJSON, err)
	}
	if k.Schema > callSchema {
		return k, &layout.SchemaError{File: callJSON, Schema: k.Schema, Known: callSchema}
	}
	return k, nil
}
