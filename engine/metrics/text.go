package metrics

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"bagpipe/engine/claim"
	"bagpipe/engine/remote/wire"
	"bagpipe/layout/disk"
)

// text is what stands now, in the text form of Prometheus.
func (m *Metrics) text() []byte {
	w := &writer{}
	w.family("bagpipe_build_info", "gauge", "The version that runs.")
	w.value(1, "version", m.version)
	m.items(w)
	m.run(w)
	m.oldest(w)
	m.store(w)
	m.machine(w)
	m.workers(w)
	return w.Bytes()
}

// workers tells of those on other machines, as the engine that serves them told last.
func (m *Metrics) workers(w *writer) {
	data, err := disk.ReadFile(m.ledger.Path(wire.StatusFile))
	var s wire.Status
	if err != nil || json.Unmarshal(data, &s) != nil {
		return // no engine serves workers
	}
	w.family("bagpipe_offers", "gauge", "Steps on offer to workers, by what they ask for.")
	for _, class := range slices.Sorted(maps.Keys(s.Offers)) {
		w.value(float64(s.Offers[class]), "class", class)
	}
	took := func(name, help string, of func(wire.Took) float64) {
		w.family("bagpipe_class_"+name, "counter", help+", by what steps ask for, since the engine began.")
		for _, class := range slices.Sorted(maps.Keys(s.Classes)) {
			w.value(of(s.Classes[class]), "class", class)
		}
		w.family("bagpipe_worker_"+name, "counter", help+", by worker, since it came.")
		for _, one := range s.Workers {
			w.value(of(one.Took), "worker", string(one.Name))
		}
	}
	took("attempts_total", "Attempts that workers ended", func(t wire.Took) float64 { return float64(t.Attempts) })
	took("wait_seconds_total", "How long they were on offer", func(t wire.Took) float64 { return t.Wait })
	took("fetch_seconds_total", "How long their files were fetched", func(t wire.Took) float64 { return t.Fetch })
	took("run_seconds_total", "How long their robots ran", func(t wire.Took) float64 { return t.Run })
	took("send_seconds_total", "How long what they made was sent", func(t wire.Took) float64 { return t.Send })
	w.family("bagpipe_refused_messages_total", "counter", "Messages to the engine that it refused, since it began: malformed, too late, of another's attempt.")
	w.value(float64(s.Refused))
	w.family("bagpipe_worker_refused_messages_total", "counter", "Those of them that came with a worker's key or named its attempt, since it came.")
	for _, one := range s.Workers {
		w.value(float64(one.Refused), "worker", string(one.Name))
	}
	w.family("bagpipe_worker_slots", "gauge", "Robots that a worker runs at once.")
	for _, one := range s.Workers {
		w.value(float64(one.Slots), "worker", string(one.Name), "state", one.State)
	}
	w.family("bagpipe_worker_running", "gauge", "Attempts that a worker has.")
	for _, one := range s.Workers {
		w.value(float64(len(one.Running)), "worker", string(one.Name))
	}
}

func (m *Metrics) items(w *writer) {
	items, held, workflows := m.index.Loaded().Counts()
	w.family("bagpipe_items", "gauge", "Items in the workspace.")
	w.value(float64(items))
	w.family("bagpipe_items_held", "gauge", "Items that a person holds.")
	w.value(float64(held))
	w.family("bagpipe_steps", "gauge", "Steps of items, by how they stand.")
	for _, f := range workflows {
		for _, s := range f.Steps {
			for _, status := range slices.Sorted(maps.Keys(s.By)) {
				w.value(float64(s.By[status]), "workflow", f.Workflow, "step", string(s.Step), "status", string(status))
			}
		}
	}
	w.family("bagpipe_steps_ready", "gauge", "Steps that a robot could begin.")
	for _, f := range workflows {
		for _, s := range f.Steps {
			w.value(float64(s.Ready), "workflow", f.Workflow, "step", string(s.Step))
		}
	}
	w.family("bagpipe_steps_for_people", "gauge", "Steps that wait for a person.")
	for _, f := range workflows {
		for _, s := range f.Steps {
			w.value(float64(s.Person), "workflow", f.Workflow, "step", string(s.Step))
		}
	}
	w.family("bagpipe_items_under_way", "gauge", "Items with a step that runs, or can be expected to run without a person, by collection.")
	ahead := m.index.Loaded().Ahead()
	for _, c := range slices.Sorted(maps.Keys(ahead)) {
		w.value(float64(ahead[c]), "collection", string(c))
	}
}

func (m *Metrics) run(w *writer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	w.family("bagpipe_steps_ended_total", "counter", "Steps that this engine ended since its start.")
	keys := slices.SortedFunc(maps.Keys(m.ended), func(a, b endedKey) int {
		return strings.Compare(a.step.String()+" "+string(a.status), b.step.String()+" "+string(b.status))
	})
	for _, k := range keys {
		w.value(float64(m.ended[k].n), k.labels()...)
	}
	w.family("bagpipe_step_run_seconds_total", "counter", "How long the steps that this engine ended ran.")
	for _, k := range keys {
		w.value(m.ended[k].ran.Seconds(), k.labels()...)
	}
	w.family("bagpipe_step_wait_seconds_total", "counter", "How long the steps that this engine ended had been ready.")
	for _, k := range keys {
		w.value(m.ended[k].waited.Seconds(), k.labels()...)
	}
	w.family("bagpipe_drops_total", "counter", "Drops that this engine took in or rejected since its start.")
	w.value(float64(m.admitted), "outcome", "admitted")
	w.value(float64(m.rejected), "outcome", "rejected")
	w.family("bagpipe_inbox_waiting", "gauge", "Drops in the inbox that the last scan left there.")
	w.value(float64(m.waiting))
	w.family("bagpipe_inbox_scanned_timestamp_seconds", "gauge", "When the inbox was looked at last.")
	w.value(float64(m.scanned.UnixMilli()) / 1000)
}

func (m *Metrics) machine(w *writer) {
	w.family("bagpipe_free_bytes", "gauge", "Free space of the workspace, and of its store.")
	for _, of := range [][2]string{{"workspace", m.ledger.Root}, {"store", m.settings.Current().Settings.StoreDir(m.ledger.Root)}} {
		if free, err := disk.Free(of[1]); err == nil {
			w.value(float64(free), "of", of[0])
		}
	}
	engines, err := claim.NewObserver(m.ledger.Root, m.ledger.Host, m.ledger.Clock).Engines()
	alive, workers := 0, 0
	for _, e := range engines {
		switch {
		case e.Alive && e.Worker != "":
			workers++
		case e.Alive:
			alive++
		}
	}
	if err == nil {
		w.family("bagpipe_engines", "gauge", "Engines that live on this workspace, this one included.")
		w.value(float64(alive))
		w.family("bagpipe_workers", "gauge", "Workers on other machines that live, or hold a lease.")
		w.value(float64(workers))
	}
	healthy := 1.0
	if m.Health() != nil {
		healthy = 0
	}
	w.family("bagpipe_healthy", "gauge", "1 where /healthz says ok.")
	w.value(healthy)
}

func (k endedKey) labels() []string {
	return []string{"workflow", k.step.Workflow, "step", string(k.step.Step), "status", string(k.status)}
}

// store tells of the commits of this process.
func (m *Metrics) store(w *writer) {
	f := m.ledger.Store.Figures()
	w.family("bagpipe_commits_total", "counter", "Commits of this engine since its start.")
	w.value(float64(f.Commits))
	w.family("bagpipe_commit_groups_total", "counter", "Groups in which they were made durable.")
	w.value(float64(f.Groups))
	w.family("bagpipe_commit_group_size_max", "gauge", "Commits in the largest of them.")
	w.value(float64(f.Largest))
	w.family("bagpipe_commit_seconds_total", "counter", "The time that groups took: building commits, writing their packs, syncing those, and moving the branch.")
	w.value(f.Building.Seconds(), "part", "build")
	w.value(f.Packing.Seconds(), "part", "pack")
	w.value(f.Syncing.Seconds(), "part", "sync")
	w.value(f.Moving.Seconds(), "part", "branch")
}

// writer writes families of metrics.
type writer struct {
	bytes.Buffer
	name string
}

func (w *writer) family(name, kind, help string) {
	w.name = name
	fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

// value writes one value; labels are names and values in turn.
func (w *writer) value(v float64, labels ...string) {
	w.WriteString(w.name)
	for i := 0; i+1 < len(labels); i += 2 {
		between := ","
		if i == 0 {
			between = "{"
		}
		fmt.Fprintf(w, "%s%s=%q", between, labels[i], labels[i+1])
	}
	if len(labels) > 0 {
		w.WriteByte('}')
	}
	w.WriteString(" " + strconv.FormatFloat(v, 'g', -1, 64) + "\n")
}
