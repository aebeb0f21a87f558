package index

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"bagpipe/engine/condition"
	"bagpipe/engine/ledger"
	"bagpipe/engine/queue"
	"bagpipe/engine/settings"
	"bagpipe/engine/state"

	"github.com/tidwall/gjson"
)

// PlainPaths are those that the index holds of every item.
var PlainPaths = map[string]func(*queue.Item) string{
	"collection": func(it *queue.Item) string { return string(it.Collection) },
	"label":      func(it *queue.Item) string { return it.Label },
	"batch":      func(it *queue.Item) string { return it.Batch },
	"lane":       func(it *queue.Item) string { return string(it.Lane) },
	"item":       func(it *queue.Item) string { return string(it.ID) },
	"created":    func(it *queue.Item) string { return it.Created.Format(time.RFC3339Nano) },
}

// FormatsPath is where the robot identify leaves an item's formats.
const FormatsPath = "metadata.formats"

// KnownPath is where an item has what people know it by.
const KnownPath = "identifiers"

// facetPaths are the paths that named queues ask for, those of web: facets:, the identifiers that people
// look for, and the formats where the workflow of a collection, a catalog or a rule identifies them: the index holds what stands there.
func facetPaths(c *settings.Snapshot) (paths []string) {
	paths = append(paths, KnownPath)
	for _, q := range c.Queues {
		for _, p := range q.Paths() {
			if PlainPaths[p] == nil {
				paths = append(paths, p)
			}
		}
	}
	for _, p := range c.Settings.Web.Facets {
		if PlainPaths[p] == nil {
			paths = append(paths, p)
		}
	}
	if identifies(c) {
		paths = append(paths, FormatsPath)
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// identifies reports whether what is dropped in some collection, lies in some catalog, or fits some rule has its formats identified.
func identifies(c *settings.Snapshot) bool {
	named := map[string]bool{c.Settings.Defaults.Workflow: true}
	for _, of := range c.Settings.Collections {
		named[of.Workflow] = true
	}
	for _, of := range c.Catalogs {
		named[of.Workflow] = true
	}
	for _, of := range c.Rules {
		for i := range of.Rules {
			named[of.Rules[i].Workflow] = true
		}
	}
	for name := range named {
		if w := c.Workflows[name]; w != nil && slices.ContainsFunc(w.Def.Steps, func(s state.Step) bool { return s.Robot == "identify" }) {
			return true
		}
	}
	return false
}

// maxFacet is how long a value may be that the index holds; a longer one is read
// when it is asked for.
const (
	maxFacet   = 500
	LongFacet  = "\x00"
	executions = "execution." // what paths into execution.json begin with
)

// FacetsHeld are the paths whose values the index holds.
func (ke *Keeper) FacetsHeld() []string {
	ke.mu.Lock()
	defer ke.mu.Unlock()
	return ke.derived.facets
}

// FacetsBegun are the paths whose values the newest index is being filled with.
func (ke *Keeper) FacetsBegun() []string { return *ke.facets.Load() }

func facetsOf(paths []string, f *ledger.Records) []string {
	if len(paths) == 0 {
		return nil
	}
	out := make([]string, len(paths))
	for i, p := range paths {
		if out[i] = LookUp(f.Manifest, f.Execution, p).Raw; len(out[i]) > maxFacet {
			out[i] = LongFacet
		}
	}
	return out
}

// LookUp finds what stands at a path of an item's records.
func LookUp(manifest, execution []byte, path string) gjson.Result {
	path = condition.Lead(path)
	if path == notesPath {
		return notes(execution)
	}
	if rest, ok := strings.CutPrefix(path, executions); ok {
		return gjson.GetBytes(execution, rest)
	}
	return gjson.GetBytes(manifest, path)
}

// notesPath leads to what is told of the steps in progress.
const notesPath = executions + "notes"

// notes gathers what the record tells of the steps in progress, as a list.
func notes(execution []byte) gjson.Result {
	told := []string{}
	gjson.GetBytes(execution, "workflows").ForEach(func(_, w gjson.Result) bool {
		w.Get("steps").ForEach(func(_, s gjson.Result) bool {
			if s.Get("status").Str != "in-progress" {
				return true
			}
			s.Get("attempts").ForEach(func(_, a gjson.Result) bool {
				if note := a.Get("progress.note").Str; note != "" && a.Get("state").Str == "in-progress" {
					told = append(told, note)
				}
				return true
			})
			return true
		})
		return true
	})
	if len(told) == 0 {
		return gjson.Result{}
	}
	data, _ := json.Marshal(told) // strings alone: always encodes
	return gjson.ParseBytes(data)
}
