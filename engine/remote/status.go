package remote

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"bagpipe/engine/remote/wire"
	"bagpipe/layout"
	"bagpipe/layout/disk"
)

// Dir is the folder of what a Remote keeps.
const Dir = layout.StateDir + "/remote"

type (
	// Status is how the workers of an engine stand, as .bagpipe/remote/status.json tells.
	Status = wire.Status
	// WorkerStatus is one worker.
	WorkerStatus = wire.WorkerStatus
)

// status tells how things stand.
func (r *Remote) status() Status {
	s := Status{Schema: wire.StatusSchema, Build: r.rooms.Version, Engine: r.place.ID, At: r.rooms.Now().UTC(), URL: r.place.URL, Transfer: r.place.Transfer,
		Offers: map[string]int{}, Workers: []WorkerStatus{}}
	r.mu.Lock()
	defer r.mu.Unlock()
	s.Epoch, s.Trouble, s.Warning, s.Plain = r.epoch, r.trouble, r.place.Warning, r.place.Plain
	s.Classes, s.Refused = maps.Clone(r.took), r.refusals
	for _, o := range r.offers {
		s.Offers[o.demand.Want.String()]++
	}
	running := map[layout.EngineID][]wire.RunningStatus{}
	for ref, l := range r.loans {
		if l.http != nil {
			continue
		}
		running[ref.Key.Engine] = append(running[ref.Key.Engine], wire.RunningStatus{Item: ref.Item, Workflow: ref.Workflow, Step: ref.Step, Attempt: ref.Key.String()})
	}
	for _, w := range r.workers {
		state := w.state
		switch {
		case state == StateSilent:
		case w.suspect != "":
			state = StateSuspect
		case w.drained:
			state = StateDraining
		case w.stopped:
			state = StateStopped
		}
		one := WorkerStatus{Name: w.Name, Machine: w.Machine, Build: w.Build, Engine: w.Engine, State: state, Slots: w.Slots, Labels: w.Labels, Robots: w.Robots,
			Running: running[w.Engine], Ends: wire.Ends{Done: w.done, Failed: w.failed, Refused: w.refused}, Suspect: w.suspect, Took: w.took, Since: w.since.UTC(), Beat: w.seen.UTC(), Shared: w.Shared != ""}
		delete(running, w.Engine)
		slices.SortFunc(one.Running, func(a, b wire.RunningStatus) int {
			return strings.Compare(string(a.Item)+a.Attempt, string(b.Item)+b.Attempt)
		})
		s.Workers = append(s.Workers, one)
	}
	for _, left := range running {
		s.Unheard += len(left)
	}
	slices.SortFunc(s.Workers, func(a, b WorkerStatus) int { return strings.Compare(string(a.Name), string(b.Name)) })
	return s
}

// saveStatus writes it down for other processes. What it replaces is never half a file.
func (r *Remote) saveStatus() {
	if r.place.URL == "" { // no workers can come
		return
	}
	data, err := json.MarshalIndent(r.status(), "", "  ")
	if err == nil {
		path := filepath.Join(r.place.Root, filepath.FromSlash(wire.StatusFile))
		tmp := path + ".tmp"
		if err = os.WriteFile(tmp, append(data, '\n'), 0o644); err == nil {
			err = os.Rename(tmp, path)
		}
	}
	if err != nil {
		r.rooms.Log.Warn("tell how the workers stand", "err", err)
	}
}

// ReadStatus reads what the engine that serves workers told last; fs.ErrNotExist where none
// ever did.
func ReadStatus(root string) (s Status, err error) {
	data, err := disk.ReadFile(filepath.Join(root, filepath.FromSlash(wire.StatusFile)))
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(data, &s)
}
