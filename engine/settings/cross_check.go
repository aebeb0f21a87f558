package settings

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"bagpipe/engine/query"
	"bagpipe/engine/queue"
	"bagpipe/engine/roots"
	"bagpipe/engine/state"
	"bagpipe/engine/timetable"
	"bagpipe/layout"
	"bagpipe/steps/target"
)

// crossCheck checks what a settings file says of others, before an edit is
// committed: a misspelt approval would let items pass without it, a misspelt
// workflow would set every drop aside. data nil is a deletion. It looks at the
// files as committed, so workflows are brought in first. defs are the definitions of v.
func (k *checker) crossCheck(v tree, defs map[string]*state.Definition, p string, data []byte) error {
	if data != nil {
		if err := k.crossCheckPlaces(v, p, data); err != nil {
			return err
		}
	}
	switch {
	case path.Dir(p) == layout.CatalogsDir && data != nil:
		return k.crossCheckCatalog(v, p, data)
	case p == layout.SettingsFile:
		return k.crossCheckSettings(p, data, defs)
	case path.Dir(p) == layout.RulesDir:
		return k.crossCheckRules(v, p, data, func(w string) bool { return defs[w] != nil })
	case path.Dir(p) == layout.QueuesDir && data != nil:
		return crossCheckQueue(p, data, defs)
	case path.Dir(p) == layout.SearchesDir && data != nil:
		return k.crossCheckSearch(v, p, data)
	case path.Dir(p) == layout.SchedulesDir && data != nil:
		return crossCheckSchedule(v, p, data, defs)
	case path.Dir(p) == layout.WorkflowsDir && data != nil:
		return k.crossCheckWorkflow(p, data)
	case path.Dir(p) == layout.WorkflowsDir:
		return k.stillNamed(v, strings.TrimSuffix(path.Base(p), ".yaml"))
	}
	return nil
}

// definitionsAt reads the sound definitions of v.
func (k *checker) definitionsAt(v tree) (map[string]*state.Definition, error) {
	entries, err := v.List(layout.WorkflowsDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	defs := map[string]*state.Definition{}
	for _, e := range entries {
		p := path.Join(layout.WorkflowsDir, e.Name)
		if e.IsDir || !isSettings(p) {
			continue
		}
		data, err := v.ReadFile(p)
		if err != nil {
			return nil, err
		}
		if part, err := k.committed(p, data); err == nil {
			d := part.(*state.Definition)
			defs[d.Name] = d
		}
	}
	return defs, nil
}

func (k *checker) crossCheckSettings(p string, data []byte, defs map[string]*state.Definition) error {
	s, err := ParseSettings(p, data)
	if err != nil {
		return err
	}
	y, err := layout.ParseYAML(p, data)
	if err != nil {
		return err
	}
	check := func(at string, c Collection) error {
		if c.Workflow != "" && defs[c.Workflow] == nil {
			return y.Errorf(at+".workflow", "no workflow %q in workflows/", c.Workflow)
		}
		for i, a := range c.Approvals {
			if !anyAsks(defs, a) {
				return y.Errorf(fmt.Sprintf("%s.approvals[%d]", at, i), "no workflow has a step %q with onRequest: true", a)
			}
		}
		return nil
	}
	if err := k.crossCheckDeployment(y, s, defs); err != nil {
		return err
	}
	if err := k.crossCheckPlacements(y, s, defs); err != nil {
		return err
	}
	if err := check("$.defaults", s.Defaults); err != nil {
		return err
	}
	for name, c := range s.Collections {
		if err := check("$.collections."+name, c); err != nil {
			return err
		}
	}
	return nil
}

func anyAsks(defs map[string]*state.Definition, step string) bool {
	for _, d := range defs {
		if s := d.Step(layout.Name(step)); s != nil && s.OnRequest {
			return true
		}
	}
	return false
}

// crossCheckWorkflow refuses a definition that holds secrets.
func (k *checker) crossCheckWorkflow(p string, data []byte) error {
	d, err := k.parseCommitted(p, data)
	if err != nil {
		return err
	}
	y, err := layout.ParseYAML(p, data)
	if err != nil {
		return err
	}
	for i := range d.Steps {
		if err := refuseSecrets(y, fmt.Sprintf("$.steps[%d]", i), d.Steps[i].Env); err != nil {
			return err
		}
	}
	return nil
}

// crossCheckSearch refuses a search in a collection that is not there.
func (k *checker) crossCheckSearch(v tree, p string, data []byte) error {
	q, err := query.Parse(p, data)
	if err != nil || q.Collection == "" {
		return err
	}
	s, err := k.settingsAt(v)
	if err != nil || s == nil || k.isCollection(s, q.Collection) {
		return err
	}
	y, err := layout.ParseYAML(p, data)
	if err != nil {
		return err
	}
	return y.Errorf("$.collection", noCollection, q.Collection)
}

// crossCheckSchedule refuses a schedule of a workflow, a catalog or a queue that is not there.
func crossCheckSchedule(v tree, p string, data []byte, defs map[string]*state.Definition) error {
	s, err := timetable.Parse(p, data)
	if err != nil {
		return err
	}
	y, err := layout.ParseYAML(p, data)
	if err != nil {
		return err
	}
	if s.Do.Start != "" && defs[s.Do.Start] == nil {
		return y.Errorf("$.do.start", "no workflow %q in workflows/", s.Do.Start)
	}
	if s.Do.Scan != "" {
		if _, err := v.ReadFile(layout.CatalogsDir + "/" + s.Do.Scan + ".yaml"); errors.Is(err, fs.ErrNotExist) {
			return y.Errorf("$.do.scan", "no catalog %q in catalogs/", s.Do.Scan)
		} else if err != nil {
			return err
		}
	}
	if s.Do.Queue == "" {
		return nil
	}
	file := layout.QueuesDir + "/" + s.Do.Queue + ".yaml"
	named, err := v.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return y.Errorf("$", "no queue %q in queues/", s.Do.Queue)
	}
	if err != nil {
		return err
	}
	q, err := queue.ParseNamed(file, named)
	if err == nil && !q.Whole() {
		return y.Errorf("$", "queue %s has where: or order:, or no steps:; a schedule works on whole steps", s.Do.Queue)
	}
	return err
}

// checkPast refuses a schedule that is new (was is nil), or has another time than it had, and whose time is past: it
// would never be due. One whose time came since stays as it is.
func (k *checker) checkPast(p string, was, data []byte, now time.Time) error {
	if path.Dir(p) != layout.SchedulesDir || data == nil {
		return nil
	}
	part, err := k.parse(p, data)
	if err != nil {
		return err
	}
	s := part.(*timetable.Schedule)
	if !s.Past(now) {
		return nil
	}
	if was != nil {
		if old, err := k.parse(p, was); err == nil && old.(*timetable.Schedule).Timing() == s.Timing() {
			return nil
		}
	}
	y, err := layout.ParseYAML(p, data)
	if err != nil {
		return err
	}
	return y.Errorf("$.trigger.at", "%s is past; expected a time to come: at is due once, ever", s.Trigger.At)
}

// crossCheckPaths refuses paths of a queue that lead into no record of any item.
func crossCheckPaths(y *layout.YAML, q *queue.Named) error {
	check := func(at, path string) error {
		if err := layout.CheckRecordPath(path); err != nil {
			return y.Errorf(at, "%v", err)
		}
		return nil
	}
	for _, p := range q.Condition().Paths() {
		if err := check("$.where", p); err != nil {
			return err
		}
	}
	for i, o := range q.Order {
		if err := check(fmt.Sprintf("$.order[%d]", i), strings.TrimPrefix(o, "-")); err != nil {
			return err
		}
	}
	return nil
}

// crossCheckQueue refuses a queue of steps that no workflow has.
func crossCheckQueue(p string, data []byte, defs map[string]*state.Definition) error {
	q, err := queue.ParseNamed(p, data)
	if err != nil {
		return err
	}
	y, err := layout.ParseYAML(p, data)
	if err != nil {
		return err
	}
	for i, text := range q.Steps {
		steps, err := queue.ParseSteps(text)
		if err != nil {
			return err
		}
		found := false
		for _, d := range defs {
			found = found || slices.ContainsFunc(d.Steps, func(s state.Step) bool {
				return steps.Has(queue.StepID{Workflow: d.Name, Step: layout.Name(s.Name)})
			})
		}
		if !found {
			return y.Errorf(fmt.Sprintf("$.steps[%d]", i), "no workflow in workflows/ has %q", text)
		}
	}
	return crossCheckPaths(y, q)
}

// settingsAt reads bagpipe.yaml of v; nil when it is not there or broken.
func (k *checker) settingsAt(v tree) (*Settings, error) {
	data, err := v.ReadFile(layout.SettingsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s, err := ParseSettings(layout.SettingsFile, data)
	if err != nil {
		return nil, nil // reported where it is loaded
	}
	return s, nil
}

// stillNamed refuses to remove a workflow that drops are sent to.
func (k *checker) stillNamed(v tree, workflow string) error {
	paths, err := Paths(v)
	if err != nil {
		return err
	}
	for _, p := range paths {
		if path.Dir(p) == layout.WorkflowsDir {
			continue
		}
		data, err := v.ReadFile(p)
		if err != nil {
			return err
		}
		for n, line := range slices.Collect(bytes.Lines(data)) {
			key, value, _ := strings.Cut(strings.TrimSpace(string(line)), ":")
			value, _, _ = strings.Cut(value, "#")
			if strings.TrimPrefix(key, "- ") == "workflow" && strings.Trim(strings.TrimSpace(value), `"'`) == workflow {
				return &layout.FileError{File: p, Line: n + 1, Column: 1, Text: fmt.Sprintf("names workflow %q still; %s/%s.yaml is kept", workflow, layout.WorkflowsDir, workflow)}
			}
		}
	}
	return nil
}

// place is a folder or a file that a settings file has written to; key names it in the file.
type place struct{ key, path string }

// placesOf gives the places outside the items' folders that what a settings file says has written to. Paths are full.
func (k *checker) placesOf(part any) (all []place) {
	add := func(key, path string) {
		if path != "" {
			all = append(all, place{key, Below(k.path(""), path)})
		}
	}
	switch part := part.(type) {
	case *Settings:
		add("$.store", part.Store)
		add("$.views", part.Views)
		for _, name := range slices.Sorted(maps.Keys(part.Targets)) {
			if c := part.Targets[name]; c.Kind == target.KindFolder {
				add("$.targets."+name+".path", c.Path)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(part.Notify)) {
			add("$.notify."+name+".atom", part.Notify[name].Atom)
		}
	case *timetable.Schedule:
		add("$.do.feeds", part.Do.Feeds)
	case *state.Definition:
		for i, s := range part.Steps {
			if own, is := s.With["store"].(string); is && s.Robot == "deposit" {
				add(fmt.Sprintf("$.steps[%d].with.store", i), own)
			}
		}
	}
	return all
}

// crossCheckPlaces refuses to have anything written into an inbox, which would take it in anew, into what the workspace keeps,
// its store where that is a target's, or into the root of a catalog.
func (k *checker) crossCheckPlaces(v tree, p string, data []byte) error {
	part, err := k.committed(p, data)
	if err != nil {
		return err
	}
	places := k.placesOf(part)
	if len(places) == 0 {
		return nil
	}
	catalogs, err := k.catalogsAt(v)
	if err != nil {
		return err
	}
	y, err := layout.ParseYAML(p, data)
	if err != nil {
		return err
	}
	kept := append(keptBy(k.path("")), k.path(layout.InboxDir))
	home, err := filepath.Abs(k.path(""))
	if err != nil {
		return err
	}
	for _, to := range places {
		abs, err := filepath.Abs(to.path)
		if err != nil {
			return err
		}
		if at := roots.Locate(abs); at.LiesIn(home) && roots.Locate(home).LiesIn(abs) {
			return y.Errorf(to.key, "%s is the workspace itself: expected a folder of its own", layout.EncodePath(to.path))
		}
		kept := kept
		if s, is := part.(*Settings); is && strings.HasPrefix(to.key, "$.targets.") {
			kept = append(slices.Clone(kept), s.StoreDir(k.path("")))
		}
		dir, err := amidst(to.path, kept)
		if err != nil {
			return err
		}
		if dir != "" {
			return y.Errorf(to.key, "%s lies in %s, where nothing is delivered", layout.EncodePath(to.path), layout.EncodePath(dir))
		}
		if err := roots.Outside(catalogs, to.path); err != nil {
			return y.Errorf(to.key, "%v", err)
		}
	}
	return nil
}

// catalogsAt reads the sound catalogs of v.
func (k *checker) catalogsAt(v tree) (map[layout.Name]*roots.Catalog, error) {
	entries, err := v.List(layout.CatalogsDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	all := map[layout.Name]*roots.Catalog{}
	for _, e := range entries {
		p := path.Join(layout.CatalogsDir, e.Name)
		if e.IsDir || !isSettings(p) {
			continue
		}
		data, err := v.ReadFile(p)
		if err != nil {
			return nil, err
		}
		if part, err := k.parse(p, data); err == nil {
			all[part.(*roots.Catalog).Name] = part.(*roots.Catalog)
		}
	}
	return all, nil
}

// crossCheckCatalog refuses a root that holds the workspace, another root, or a place that settings have written to, or lies
// in the workspace or another root.
func (k *checker) crossCheckCatalog(v tree, p string, data []byte) error {
	c, err := roots.Parse(p, data)
	if err != nil {
		return err
	}
	y, err := layout.ParseYAML(p, data)
	if err != nil {
		return err
	}
	all, err := k.catalogsAt(v)
	if err != nil {
		return err
	}
	if err := c.Alone(k.path(""), all); err != nil {
		return y.Errorf("$.root", "%v", err)
	}
	paths, err := Paths(v)
	if err != nil {
		return err
	}
	for _, other := range paths {
		if ofFeeds(other) {
			continue
		}
		data, err := v.ReadFile(other)
		if err != nil {
			return err
		}
		part, err := k.committed(other, data)
		if err != nil {
			continue // told by itself
		}
		for _, to := range k.placesOf(part) {
			if roots.Outside(map[layout.Name]*roots.Catalog{c.Name: c}, to.path) != nil {
				return y.Errorf("$.root", "expected a folder that nothing is written to, and %s, which lies in it, is written to by %s", layout.EncodePath(to.path), other)
			}
		}
	}
	return nil
}
