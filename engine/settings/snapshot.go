package settings

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"bagpipe/engine/audience"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/query"
	"bagpipe/engine/queue"
	"bagpipe/engine/recognise"
	"bagpipe/engine/roots"
	"bagpipe/engine/state"
	"bagpipe/engine/tags"
	"bagpipe/engine/timetable"
	"bagpipe/layout"
	"bagpipe/steps"

	"golang.org/x/sync/errgroup"
)

// config is what people wrote, as committed and in force.
type Snapshot struct {
	Settings  *Settings
	Rules     []*RuleFile
	Book      *recognise.Book // the rules in their order
	broken    []error         // rule files of which there is no sound version
	Workflows map[string]*ledger.Definition
	Queues    map[string]*queue.Named
	Schedules map[string]*timetable.Schedule
	Searches  map[string]*query.Saved
	Catalogs  map[layout.Name]*roots.Catalog
	Tags      *tags.Book
	mark      string                // of the tip they were read at, see settingsMark
	kept      []*timetable.Schedule // those that work on queues, by name
}

// KeptBy are the schedules to which the work on a step is left: those that work on a queue that
// has the step.
func (c *Snapshot) KeptBy(id queue.StepID) (by []*timetable.Schedule) {
	for _, s := range c.kept {
		if q := c.Queues[s.Do.Queue]; q != nil && q.Whole() && q.Wants(id) {
			by = append(by, s)
		}
	}
	return by
}

// Keeping is the folder, or the file of settings, that a path lies in, or is, of those which the workspace root itself keeps, the roots of catalogs, and others, which are
// named as they are on this disk; "": none.
func (c *Snapshot) Keeping(path, root string, others ...string) (dir string, err error) {
	own := append([]string{c.Settings.StoreDir(root)}, others...)
	for _, settings := range []string{layout.SettingsFile, audience.PeopleDir, audience.CollectionsDir} {
		own = append(own, filepath.Join(root, settings))
	}
	for _, k := range c.Catalogs {
		own = append(own, k.Root)
	}
	return amidst(path, append(own, keptBy(root)...))
}

// settingsDirs are the folders of settings files.
var settingsDirs = []string{layout.WorkflowsDir, layout.RulesDir, layout.QueuesDir, layout.SchedulesDir, layout.SearchesDir, layout.CatalogsDir,
	layout.WordsDir, layout.PlacesDir,
	audience.Dir, audience.PeopleDir, audience.CollectionsDir}

// tempAge is how old a temporary file is that nobody writes any more.
const tempAge = time.Hour

// tempOf is the name of a temporary file beside a settings file, as disk.WriteFile makes them.
var tempOf = regexp.MustCompile(`^\.[A-Za-z0-9._-]+\.(?:yaml|geojson)[0-9]{6,}$`)

// SweepTemps removes the temporary files that killed processes left in the folders of settings of the workspace root.
func SweepTemps(root string, now time.Time) error {
	var errs []error
	for _, dir := range append([]string{"."}, settingsDirs...) {
		entries, _ := os.ReadDir(filepath.Join(root, dir)) // not there: nothing to remove
		for _, e := range entries {
			if !e.Type().IsRegular() || !tempOf.MatchString(e.Name()) {
				continue
			}
			if info, err := e.Info(); err == nil && now.Sub(info.ModTime()) > tempAge {
				errs = append(errs, os.Remove(filepath.Join(root, dir, e.Name())))
			}
		}
	}
	return errors.Join(errs...)
}

// ofFeeds reports whether a settings file is one of the feeds, which read those of each commit and tell of those that
// are broken. A workspace has one a person.
func ofFeeds(p string) bool {
	dir := path.Dir(p)
	return dir == audience.Dir || dir == audience.PeopleDir || dir == audience.CollectionsDir
}

// isSettings tells whether a committed path is one people edit.
func isSettings(p string) bool {
	if p == layout.SettingsFile {
		return true
	}
	dir, ending := path.Dir(p), ".yaml"
	if dir == layout.PlacesDir {
		ending = ".geojson"
	}
	return path.Ext(p) == ending && !strings.HasPrefix(path.Base(p), ".") && slices.Contains(settingsDirs, dir)
}

// checkFile checks one settings file; its errors are *layout.FileError.
func (k *checker) checkFile(p string, data []byte) error {
	_, err := k.parse(p, data)
	return err
}

// checkEdit is checkFile of one that is not committed yet. Of one with a password nothing else is said, which
// could show it.
func (k *checker) checkEdit(p string, data []byte) error {
	if err := refusePasswords(p, data); err != nil {
		return err
	}
	return k.checkFile(p, data)
}

// parse reads and checks one settings file; its errors are *layout.FileError. What it
// answers with is read by many, and changed by nobody.
func (k *checker) parse(p string, data []byte) (any, error) {
	return k.parsed.read(p, data, k.parseAnew)
}

// parseAnew reads one settings file, as its folder says what it is; nil: nothing that a
// snapshot keeps.
func (k *checker) parseAnew(p string, data []byte) (any, error) {
	if line := layout.Conflict(data); line > 0 {
		return nil, &layout.FileError{File: p, Line: line, Column: 1, Text: TwoVersions}
	}
	switch path.Dir(p) {
	case ".":
		return ParseSettings(p, data)
	case layout.WorkflowsDir:
		return k.parseWorkflow(p, data)
	case layout.RulesDir:
		return ParseRules(p, data)
	case layout.QueuesDir:
		return queue.ParseNamed(p, data)
	case layout.SchedulesDir:
		return timetable.Parse(p, data)
	case layout.SearchesDir:
		return query.Parse(p, data)
	case layout.CatalogsDir:
		return roots.Parse(p, data)
	case layout.WordsDir:
		return tags.Parse(p, data)
	case layout.PlacesDir:
		return tags.ParsePlaces(p, data)
	case audience.Dir, audience.PeopleDir, audience.CollectionsDir:
		return nil, audience.Check(p, data)
	}
	return nil, nil
}

// committed reads a settings file that is in the history, without a look at the values of
// parameters.
func (k *checker) committed(p string, data []byte) (any, error) {
	part, err := k.parse(p, data)
	if err != nil && path.Dir(p) == layout.WorkflowsDir {
		return k.parseCommitted(p, data)
	}
	return part, err
}

// parseWorkflow reads and checks a definition, with this engine's robots.
func (k *checker) parseWorkflow(file string, data []byte) (*state.Definition, error) {
	return state.ParseDefinition(file, data, Known(k.robots))
}

// parseCommitted is parseWorkflow without a look at the values of parameters, and at keys
// that do nothing.
func (k *checker) parseCommitted(file string, data []byte) (*state.Definition, error) {
	return k.parseWithout(file, data, func(r *state.Robot) { r.Check, r.Childless = nil, false })
}

// parseWithout is parseWorkflow where less is known of the robots.
func (k *checker) parseWithout(file string, data []byte, forget func(*state.Robot)) (*state.Definition, error) {
	known := Known(k.robots)
	return state.ParseDefinition(file, data, func(name string) (state.Robot, bool) {
		r, ok := known(name)
		forget(&r)
		return r, ok
	})
}

// tolerated says what comes of a definition in the history that is not quite right.
func (k *checker) tolerated(file string, data []byte) string {
	if _, err := k.parseWithout(file, data, func(r *state.Robot) { r.Childless = false }); err == nil {
		return "; the key does nothing"
	}
	return ", and that step fails until this is mended"
}

// readAll reads settings files, and parses them side by side: each command that opens a
// workspace waits for it.
func (k *checker) readAll(v gitstore.View, paths []string) (files [][]byte, err error) {
	files = make([][]byte, len(paths))
	for i, p := range paths {
		if files[i], err = v.ReadFile(p); err != nil {
			return nil, fmt.Errorf("read %s: %w", p, err)
		}
	}
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, p := range paths {
		g.Go(func() error { _ = k.checkFile(p, files[i]); return nil }) // the error is kept with the file
	}
	_ = g.Wait()
	return files, nil
}

// loadConfig reads the settings in force: of each file the committed version,
// or, when that is broken (a push is not checked before it lands), the last one
// that was not. A definition of which only a parameter's value, or a key that does
// nothing, is refused stays in force: it was before that was looked at, and another
// version, or none, would send drops elsewhere.
func (so *Source) loadConfig(ctx context.Context, v gitstore.View) (*Snapshot, error) {
	c := &Snapshot{Workflows: map[string]*ledger.Definition{}, Queues: map[string]*queue.Named{}, Schedules: map[string]*timetable.Schedule{}, Searches: map[string]*query.Saved{}, Catalogs: map[layout.Name]*roots.Catalog{}, Tags: tags.NewBook()}
	paths, err := Paths(v)
	if err != nil {
		return nil, err
	}
	paths = slices.DeleteFunc(paths, ofFeeds)
	files, err := so.check.readAll(v, paths)
	if err != nil {
		return nil, err
	}
	for i, p := range paths {
		data := files[i]
		part, sound := so.check.committed(p, data)
		bad := so.check.checkFile(p, data)
		if bad != nil && sound == nil {
			so.ledger.Warn(fmt.Sprintf("%v; the workflow is in force all the same%s", bad, so.check.tolerated(p, data)))
		}
		if sound != nil {
			if data, err = so.lastGood(ctx, v, p); err != nil {
				return nil, err
			}
			so.ledger.Warn(fmt.Sprintf("%v; %s", bad, inForce(bad, data)))
			if data == nil && path.Dir(p) == layout.RulesDir {
				c.broken = append(c.broken, bad)
			}
			if data == nil {
				continue
			}
			if part, err = so.check.committed(p, data); err != nil {
				return nil, err
			}
		}
		c.add(p, data, part)
	}
	if err := so.brokenAnew(v, paths, c); err != nil {
		return nil, err
	}
	if len(c.Rules) == 0 && len(c.broken) == 0 { // a push removed them: to reject all drops would be for good
		c.broken = append(c.broken, &layout.FileError{File: layout.RulesDir + "/", Text: "there is no rule; write one, or bring back those that were removed"})
	}
	if c.Settings == nil {
		if err := so.settingsRemoved(ctx, v, c); err != nil {
			return nil, err
		}
	}
	if c.Settings == nil {
		return nil, errors.New(layout.SettingsFile + " is not at the tip of the history, nor in the workspace; write it again, or revert its removal in a clone and push")
	}
	c.MakeBook()
	for _, name := range slices.Sorted(maps.Keys(c.Schedules)) {
		if c.Schedules[name].Do.Queue != "" {
			c.kept = append(c.kept, c.Schedules[name])
		}
	}
	return c, nil
}

// brokenAnew notes the rule files in the workspace that are broken and were never
// committed: which drops they are about nobody knows, so all wait, as they do for one
// that was pushed broken.
func (so *Source) brokenAnew(v gitstore.View, committed []string, c *Snapshot) error {
	entries, err := os.ReadDir(so.ledger.Path(layout.RulesDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for settings: %w", err)
	}
	for _, entry := range entries {
		p := layout.RulesDir + "/" + entry.Name()
		if !entry.Type().IsRegular() || !isSettings(p) || slices.Contains(committed, p) {
			continue
		}
		data, err := os.ReadFile(so.ledger.Path(p))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", p, err)
		}
		refused, err := so.CheckEdit(p, data)
		if err != nil {
			return err
		}
		if refused != nil {
			c.broken = append(c.broken, refused)
		}
	}
	return nil
}

// MakeBook brings the rules into their order. While a rule file is broken of which
// there is no sound version, nothing is recognised: the drops wait.
func (c *Snapshot) MakeBook() {
	c.Book = recognise.NewBook(c.Rules)
	c.Book.Broken = append(c.Book.Broken, c.broken...)
}

// settingsRemoved goes on with the last sound settings where a push removed
// them, as it does where a push broke them: nothing else could be looked at.
func (so *Source) settingsRemoved(ctx context.Context, v gitstore.View, c *Snapshot) error {
	data, err := so.lastGood(ctx, v, layout.SettingsFile)
	if err != nil || data == nil {
		return err
	}
	so.ledger.Warn(layout.SettingsFile + " was removed by a push; the last sound one stays in force; write it again, or revert its removal in a clone and push")
	c.Settings, err = ParseSettings(layout.SettingsFile, data)
	return err
}

// add takes in what a settings file says.
func (c *Snapshot) add(p string, data []byte, part any) {
	switch part := part.(type) {
	case *Settings:
		c.Settings = part
	case *state.Definition:
		c.Workflows[part.Name] = &ledger.Definition{Path: p, Data: data, Def: part}
	case *RuleFile:
		c.Rules = append(c.Rules, part)
	case *queue.Named:
		c.Queues[part.Name] = part
	case *timetable.Schedule:
		c.Schedules[part.Name] = part
	case *query.Saved:
		c.Searches[part.Name] = part
	case *roots.Catalog:
		c.Catalogs[part.Name] = part
	case *tags.Vocabulary:
		c.Tags.Vocabularies[part.Name] = part
	case *tags.Places:
		c.Tags.Places[part.Name] = part
	}
}

// TwoVersions is said of lines that two histories changed.
const TwoVersions = "two histories changed these lines: choose what is right, and remove the lines that begin with <<<<<<<, ======= and >>>>>>>"

func inForce(bad error, data []byte) string {
	switch {
	case data == nil:
		return "this version was pushed; there is no sound version, so it is left out"
	case strings.HasSuffix(bad.Error(), TwoVersions):
		return "until then what was in force here stays so"
	}
	return "this version was pushed; the last sound one stays in force"
}

// lastGood finds the newest sound version of a file in the history; nil when there is none. Where two
// histories were joined, it is what was in force in this workspace before (gitstore.Ours), or came after,
// whatever the other history made of the file meanwhile.
func (so *Source) lastGood(ctx context.Context, v gitstore.View, p string) ([]byte, error) {
	from := v.Commit()
	ours, err := gitstore.Ours(ctx, so.ledger.Root)
	if err != nil {
		return nil, err
	}
	if !ours.IsZero() && gitstore.Leads(ctx, so.ledger.Root, ours, from) {
		since, err := gitstore.Onward(ctx, so.ledger.Root, ours, from, p)
		if err != nil {
			return nil, fmt.Errorf("look for a sound version of %s: %w", p, err)
		}
		for _, h := range append(since, ours) {
			if data, err := soundAt(so, h, p); data != nil || err != nil {
				return data, err
			}
		}
		from = ours
	}
	for c, err := range so.ledger.Store.History(ctx, gitstore.HistoryOptions{Path: p, From: from}) {
		if err != nil {
			return nil, fmt.Errorf("look for a sound version of %s: %w", p, err)
		}
		if data, err := soundAt(so, c.Hash, p); data != nil || err != nil {
			return data, err
		}
	}
	return nil, nil
}

// soundAt gives a file at a commit; nil where it is not there, or cannot be read.
func soundAt(so *Source, commit gitstore.Hash, p string) ([]byte, error) {
	v, err := so.ledger.Store.At(commit)
	if err != nil {
		return nil, err
	}
	data, err := v.ReadFile(p)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if _, err := so.check.committed(p, data); err != nil {
		return nil, nil
	}
	return data, nil
}

// Paths lists the committed settings files, sorted.
func Paths(v tree) ([]string, error) {
	var paths []string
	for _, dir := range append([]string{""}, settingsDirs...) {
		entries, err := v.List(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", dir, err)
		}
		for _, entry := range entries {
			if p := path.Join(dir, entry.Name); !entry.IsDir && isSettings(p) {
				paths = append(paths, p)
			}
		}
	}
	slices.Sort(paths)
	return paths, nil
}

// Known tells a definition's reader which robots there are.
func Known(robots map[layout.Name]steps.Builtin) state.Robots {
	return func(name string) (state.Robot, bool) {
		b, ok := robots[layout.Name(name)]
		return state.Robot{Parameters: b.Parameters, Childless: b.Childless, Check: func(with map[string]any) (parameter string, err error) {
			if b.Check == nil {
				return "", nil
			}
			err = b.Check(with)
			if wrong := new(steps.ParameterError); errors.As(err, &wrong) {
				return wrong.Name, errors.New(wrong.Text)
			}
			return "", err
		}}, ok
	}
}

// Current is the configuration in force.
func (so *Source) Current() *Snapshot {
	so.mu.Lock()
	defer so.mu.Unlock()
	return so.config
}

// Asks are what built-in robots ask of the snapshot.
func (s *Snapshot) Asks() Asks {
	return Asks{LeavesOut: s.Book.LeavesOut() != nil, Checks: s.Book.Checks(), Signatures: s.Settings.Formats != ""}
}
