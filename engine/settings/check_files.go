package settings

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/timetable"
	"bagpipe/layout"
	"bagpipe/steps"
	"bagpipe/steps/target"
)

// tree is where settings are read from: a commit, or a folder.
type tree interface {
	// ReadFile reads a file; one that is not there is fs.ErrNotExist.
	ReadFile(name string) ([]byte, error)
	// List lists a folder; "" is the whole.
	List(dir string) ([]gitstore.Entry, error)
}

// CheckFolder checks all settings of a workspace, or of a clone of one, as they lie in a
// folder: each by itself, and what it says of the others. It gives the files it looked at
// and the mistakes, each a *layout.FileError. Of a workspace that was restored and not opened
// since, they are what its history has. At the time at, schedules that will do nothing are mistakes.
func CheckFolder(ctx context.Context, root string, robots map[layout.Name]steps.Builtin, at time.Time) (paths []string, mistakes []error, err error) {
	t, err := treeAt(ctx, root)
	if err != nil {
		return nil, nil, err
	}
	if paths, mistakes, err = checkTree(t, newChecker(root, robots)); err != nil {
		return paths, mistakes, err
	}
	for _, p := range paths {
		if p == layout.SettingsFile {
			mistakes = append(mistakes, badTemplates(t, root, p)...)
		}
		if path.Dir(p) != layout.SchedulesDir {
			continue
		}
		idle, err := idleSchedule(ctx, t, root, p, at)
		if err != nil {
			return paths, mistakes, err
		}
		mistakes = append(mistakes, idle...)
	}
	return paths, mistakes, nil
}

// badTemplates tells the templates of targets that cannot be parsed, and in the workspace itself those that cannot be read: a clone may
// have none.
func badTemplates(t tree, root, p string) (mistakes []error) {
	data, err := t.ReadFile(p)
	if err != nil {
		return nil
	}
	s, err := ParseSettings(p, data)
	if err != nil {
		return nil // told by itself
	}
	y, err := layout.ParseYAML(p, data)
	if err != nil {
		return nil
	}
	seen := map[string]bool{"": true}
	for _, name := range slices.Sorted(maps.Keys(s.Targets)) {
		file := s.Targets[name].Template
		text, err := os.ReadFile(Below(root, file))
		if seen[file] || err != nil && !isWorkspace(root) {
			continue
		}
		seen[file] = true
		if err != nil {
			mistakes = append(mistakes, y.Errorf("$.targets."+name+".template", "%v", err))
			continue
		}
		if _, err := target.ParseTemplate(file, string(text)); err != nil {
			said := strings.TrimPrefix(err.Error(), "template: "+filepath.Base(file)+":")
			line, text, _ := strings.Cut(said, ": ")
			n, _ := strconv.Atoi(line)
			mistakes = append(mistakes, &layout.FileError{File: file, Line: n, Column: 1, Text: text})
		}
	}
	return mistakes
}

// idleSchedule says why the schedule of a file would do nothing from now on: it is never due again, or, in the
// workspace itself, its program is not there. A file that cannot be read is told by itself.
func idleSchedule(ctx context.Context, t tree, root, p string, now time.Time) (mistakes []error, err error) {
	data, err := t.ReadFile(p)
	if err != nil {
		return nil, nil
	}
	s, err := timetable.Parse(p, data)
	if err != nil {
		return nil, nil
	}
	y, err := layout.ParseYAML(p, data)
	if err != nil {
		return nil, nil
	}
	if wrong := FindProgram(root, s.Do.Command); wrong != nil && isWorkspace(root) {
		mistakes = append(mistakes, y.Errorf("$.do.command", "%v", wrong))
	}
	if _, ever := s.Next(now, time.Time{}); ever || s.Trigger.Queue != "" {
		return mistakes, nil
	}
	idle, err := neverFired(ctx, t, root, s.Name)
	if idle {
		mistakes = append(mistakes, y.Errorf("$.trigger", "it is never due: %s", s.Trigger))
	}
	return mistakes, err
}

// neverFired reports whether a schedule is started, and has no firings.
func neverFired(ctx context.Context, t tree, root, name string) (bool, error) {
	file := layout.FiringsDir + "/" + name + ".json"
	state, err := t.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) && isWorkspace(root) { // it is in the history alone
		var files gitstore.Files
		files, err = gitstore.FilesOf(ctx, root, "main", file)
		state = files[file]
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	var seen struct {
		Status  string
		Firings map[string]any
	}
	if len(state) > 0 && json.Unmarshal(state, &seen) != nil {
		return false, nil // schedule list tells of it
	}
	return len(seen.Firings) == 0 && seen.Status != "stopped", nil
}

// isWorkspace reports whether a folder is a workspace, and no clone of one.
func isWorkspace(root string) bool {
	for _, name := range []string{layout.RepositoryDir, layout.StateDir} {
		if _, err := os.Lstat(filepath.Join(root, name)); err != nil {
			return false
		}
	}
	return true
}

// FindProgram reports a program that is not there.
func FindProgram(root string, command []string) error {
	if len(command) == 0 {
		return nil
	}
	_, err := exec.LookPath(ProgramOf(root, command))
	return err
}

// ProgramOf is the program of a command: a path is taken from the workspace.
func ProgramOf(root string, command []string) string {
	if strings.Contains(command[0], "/") {
		return Below(root, command[0])
	}
	return command[0]
}

// treeAt is the settings as they lie in a workspace or in a clone of one.
func treeAt(ctx context.Context, root string) (tree, error) {
	if info, err := os.Stat(root); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no folder %s", root)
	} else if err != nil {
		return nil, err
	} else if !info.IsDir() {
		return nil, fmt.Errorf("%s is not a folder", root)
	}
	if _, err := os.Lstat(filepath.Join(root, shownFile)); err != nil && isWorkspace(root) {
		files, err := gitstore.FilesOf(ctx, root, "main", append([]string{layout.SettingsFile}, settingsDirs...)...)
		return overlay{folderTree(root), files}, err
	}
	return folderTree(root), nil
}

// overlay is a tree over another, as files in a workspace stand over what its history has.
type overlay struct{ over, under tree }

// ReadFile reads a file of the upper tree, else of the other.
func (t overlay) ReadFile(name string) ([]byte, error) {
	data, err := t.over.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return t.under.ReadFile(name)
	}
	return data, err
}

// List lists a folder of both.
func (t overlay) List(dir string) ([]gitstore.Entry, error) {
	out, err := t.over.List(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	under, err := t.under.List(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range under {
		if !slices.ContainsFunc(out, func(o gitstore.Entry) bool { return o.Name == e.Name }) {
			out = append(out, e)
		}
	}
	return out, nil
}

// comingTree is what comes into force once the files of a workspace are taken in: each as it lies there, if it is sound, else as
// it is committed.
type comingTree struct {
	overlay
	k *checker
}

// ReadFile reads a file of the workspace that is sound, else of the history.
func (t comingTree) ReadFile(name string) ([]byte, error) {
	data, err := t.over.ReadFile(name)
	if err == nil && t.k.checkEdit(name, data) == nil {
		return data, nil
	}
	if committed, err := t.under.ReadFile(name); err == nil {
		return committed, nil
	}
	return data, err
}

// CheckPushed checks the settings of one commit that is pushed to the workspace at root, as a Pushed does.
func CheckPushed(ctx context.Context, root, before, commit string, robots map[layout.Name]steps.Builtin, at time.Time) (mistakes, doubts []error, err error) {
	return NewPushed(root, robots).Check(ctx, before, commit, at)
}

// Pushed checks the settings of commits that are pushed, many in a row: what has one content is parsed once. One goroutine
// uses it.
type Pushed struct {
	root   string
	k      *checker
	before string // the commit that then and old are of; "": none
	then   gitstore.Files
	old    []error
}

// NewPushed is for the workspace at root.
func NewPushed(root string, robots map[layout.Name]steps.Builtin) *Pushed {
	return &Pushed{root: root, k: newChecker(root, robots)}
}

// Check checks the settings of a commit. What was as wrong at the commit before, in a file that the push leaves as it was, is no mistake
// of the push. before may be empty. Schedules whose time is past are doubts: another site may have made them in time.
func (p *Pushed) Check(ctx context.Context, before, commit string, at time.Time) (mistakes, doubts []error, err error) {
	if large, err := gitstore.LargeRecord(ctx, p.root, before, commit); err != nil {
		return nil, nil, err
	} else if large != "" {
		return []error{TooLarge(large)}, nil, nil
	}
	now, mistakes, err := p.checkCommit(ctx, commit)
	if err != nil {
		return nil, nil, err
	}
	if wrong, err := checkMark(ctx, p.root, before, commit); err != nil {
		return nil, nil, err
	} else if wrong != nil {
		mistakes = append(mistakes, wrong)
	}
	if doubts, err = pushedPast(ctx, p.root, before, now, at); len(mistakes) == 0 || before == "" || err != nil {
		return mistakes, doubts, err
	}
	if p.before != before {
		if p.then, p.old, err = p.checkCommit(ctx, before); err != nil {
			return nil, nil, err
		}
		p.before = before
	}
	return slices.DeleteFunc(mistakes, func(m error) bool {
		var at *layout.FileError
		return errors.As(m, &at) && bytes.Equal(now[at.File], p.then[at.File]) &&
			slices.ContainsFunc(p.old, func(o error) bool { return o.Error() == m.Error() })
	}), doubts, nil
}

// TooLarge is the mistake of a push that brings a record larger than any is.
func TooLarge(record string) error {
	return &layout.FileError{File: record, Text: "is larger than any record of an item"}
}

// pushedPast doubts schedules that a push brings, or gives another time, and whose time is past.
func pushedPast(ctx context.Context, root, before string, files gitstore.Files, at time.Time) (doubts []error, err error) {
	k, then, read := newChecker(root, nil), gitstore.Files{}, before == ""
	for _, p := range slices.Sorted(maps.Keys(files)) {
		if !isSettings(p) || !bytes.Contains(files[p], []byte("at:")) || k.checkPast(p, nil, files[p], at) == nil { // most, and no other is read before
			continue
		}
		if !read {
			if then, err = gitstore.FilesOf(ctx, root, before, layout.SchedulesDir); err != nil {
				return nil, err
			}
			read = true
		}
		var wrong *layout.FileError
		if errors.As(k.checkPast(p, then[p], files[p], at), &wrong) && k.checkFile(p, files[p]) == nil {
			doubts = append(doubts, wrong)
		}
	}
	return doubts, nil
}

// checkMark refuses a commit in which the workspace has another mark than at the commit before, or
// none: stores know it by that.
func checkMark(ctx context.Context, root, before, commit string) (mistake, err error) {
	var marks [2]layout.Workspace
	for n, at := range []string{before, commit} {
		if at == "" {
			return nil, nil
		}
		files, err := gitstore.FilesOf(ctx, root, at, layout.WorkspaceFile)
		if err != nil {
			return nil, err
		}
		if data, there := files[layout.WorkspaceFile]; there {
			if marks[n], err = layout.DecodeWorkspace(data); err != nil && n == 1 {
				return &layout.FileError{File: layout.WorkspaceFile, Text: err.Error()}, nil
			}
		}
	}
	if was := marks[0].Mark; was != "" && marks[1].Mark != was {
		return &layout.FileError{File: layout.WorkspaceFile, Text: fmt.Sprintf("expected the workspace's mark %q, by which its stores know it", was)}, nil
	}
	return nil, nil
}

func (p *Pushed) checkCommit(ctx context.Context, commit string) (gitstore.Files, []error, error) {
	files, err := gitstore.FilesOf(ctx, p.root, commit, append([]string{layout.SettingsFile}, settingsDirs...)...)
	if err != nil {
		return nil, nil, err
	}
	_, mistakes, err := checkTree(files, p.k)
	return files, mistakes, err
}

func newChecker(root string, robots map[layout.Name]steps.Builtin) *checker {
	return &checker{robots: robots, path: func(rel string) string { return filepath.Join(root, filepath.FromSlash(rel)) }}
}

func checkTree(t tree, k *checker) (paths []string, mistakes []error, err error) {
	if paths, err = Paths(t); err != nil {
		return nil, nil, err
	}
	if !slices.Contains(paths, layout.SettingsFile) {
		mistakes = append(mistakes, &layout.FileError{File: layout.SettingsFile, Text: "is not there"})
	}
	defs, err := k.definitionsAt(t) // once: files may be thousands
	if err != nil {
		return paths, nil, err
	}
	for _, p := range paths {
		data, err := t.ReadFile(p)
		if err == nil {
			if err = k.checkEdit(p, data); err == nil {
				err = k.crossCheck(t, defs, p, data)
			}
		}
		var wrong *layout.FileError
		switch {
		case errors.As(err, &wrong):
			mistakes = append(mistakes, wrong)
		case err != nil:
			return paths, mistakes, err
		}
	}
	// What the settings say of other files comes after what is wrong with those.
	slices.SortStableFunc(mistakes, func(a, b error) int { return cmp.Compare(ofAll(a), ofAll(b)) })
	return paths, mistakes, nil
}

// ofAll is 1 for a mistake in the file that names the others.
func ofAll(mistake error) int {
	var at *layout.FileError
	if errors.As(mistake, &at) && at.File == layout.SettingsFile {
		return 1
	}
	return 0
}

// folderTree is a folder with settings.
type folderTree string

// ReadFile reads a regular file.
func (t folderTree) ReadFile(name string) ([]byte, error) {
	path := filepath.Join(string(t), filepath.FromSlash(name))
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &layout.FileError{File: name, Text: "is no regular file"}
	}
	return os.ReadFile(path)
}

// List lists a folder.
func (t folderTree) List(dir string) (out []gitstore.Entry, err error) {
	entries, err := os.ReadDir(filepath.Join(string(t), filepath.FromSlash(dir)))
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		return nil, fmt.Errorf("look for settings: %w", err)
	}
	for _, e := range entries {
		out = append(out, gitstore.Entry{Name: e.Name(), IsDir: e.IsDir()})
	}
	return out, nil
}

// Mistakes are those in the settings of one folder, as they lie in the workspace; of what is not
// there, as the history has it.
func (so *Source) Mistakes(dir string) (mistakes []*layout.FileError, err error) {
	v, err := so.ledger.Store.Tip()
	if err != nil {
		return nil, err
	}
	_, all, err := checkTree(overlay{folderTree(so.ledger.Root), v}, newChecker(so.ledger.Root, so.check.robots))
	for _, m := range all {
		var at *layout.FileError
		if errors.As(m, &at) && path.Dir(at.File) == dir {
			mistakes = append(mistakes, at)
		}
	}
	return mistakes, err
}

// BreaksAnew reports whether some file of settings cannot be read at the commit now, and each such file
// could at the one before. root is the workspace's.
func BreaksAnew(before, now gitstore.View, root string, robots map[layout.Name]steps.Builtin) (anew bool, err error) {
	if same, err := sameSettings(before, now); same || err != nil {
		return false, err
	}
	paths, err := Paths(now)
	if err != nil {
		return false, err
	}
	k := newChecker(root, robots)
	unsound := func(v gitstore.View, p string) (bool, error) {
		data, err := v.ReadFile(p)
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		_, wrong := k.committed(p, data)
		return wrong != nil, nil
	}
	for _, p := range paths {
		bad, err := unsound(now, p)
		if err != nil {
			return false, err
		}
		if !bad {
			continue
		}
		if was, err := unsound(before, p); was || err != nil {
			return false, err
		}
		anew = true
	}
	return anew, nil
}

func sameSettings(a, b gitstore.View) (bool, error) {
	was, err := settingsMark(a)
	if err != nil {
		return false, err
	}
	is, err := settingsMark(b)
	return was == is, err
}
