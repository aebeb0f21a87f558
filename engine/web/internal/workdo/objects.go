package workdo

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"bagpipe/engine/ask"
	"bagpipe/engine/fault"
	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// show reads the item that a path names.
func (c *Calls) show(r *http.Request) (ask.Detail, string, error) {
	id, name, err := c.object(r)
	if err != nil {
		return ask.Detail{}, name, err
	}
	d, err := c.d.Ask.Show(r.Context(), id)
	return d, name, err
}

// latest is the latest run of a workflow, or the run that is named.
func latest(d ask.Detail, workflow string) (ask.WorkflowDetail, error) {
	var found *ask.WorkflowDetail
	number := 0
	for i := range d.Workflows {
		name, n := state.Instance(d.Workflows[i].Workflow)
		if d.Workflows[i].Workflow == workflow {
			return d.Workflows[i], nil
		}
		if name == workflow && n > number {
			found, number = &d.Workflows[i], n
		}
	}
	if found == nil {
		return ask.WorkflowDetail{}, ledger.NoInstance(d.Manifest.Item, workflow)
	}
	return *found, nil
}

func (c *Calls) workflows(w http.ResponseWriter, r *http.Request) error {
	d, name, err := c.show(r)
	if err != nil {
		return err
	}
	n := node{name: "workflows", attrs: []string{"objectId", name}}
	for _, run := range d.Workflows {
		n.kids = append(n.kids, workflowNode(d, run, name))
	}
	send(w, http.StatusOK, n)
	return nil
}

func (c *Calls) workflow(w http.ResponseWriter, r *http.Request) error {
	d, name, err := c.show(r)
	if err != nil {
		return err
	}
	run, err := latest(d, r.PathValue("workflow"))
	if err != nil {
		return err
	}
	send(w, http.StatusOK, workflowNode(d, run, name))
	return nil
}

func (c *Calls) process(w http.ResponseWriter, r *http.Request) error {
	d, _, err := c.show(r)
	if err != nil {
		return err
	}
	run, step, err := stepOf(d, r.PathValue("workflow"), r.PathValue("step"))
	if err != nil {
		return err
	}
	send(w, http.StatusOK, processNode(d, run, step))
	return nil
}

func stepOf(d ask.Detail, workflow, step string) (ask.WorkflowDetail, ask.StepDetail, error) {
	run, err := latest(d, workflow)
	if err != nil {
		return run, ask.StepDetail{}, err
	}
	for _, s := range run.Steps {
		if string(s.Step) == step {
			return run, s, nil
		}
	}
	return run, ask.StepDetail{}, fault.New(fault.NotFound, fmt.Sprintf("workflow %s has no step %s", run.Workflow, step))
}

func workflowNode(d ask.Detail, run ask.WorkflowDetail, object string) node {
	n := node{name: "workflow", attrs: []string{"repository", "dor", "objectId", object, "id", base(run.Workflow), "status", activity(run.Status)}}
	for _, s := range run.Steps {
		n.kids = append(n.kids, processNode(d, run, s))
	}
	return n
}

// activity is active until the workflow is done, or was taken out of the queues.
func activity(s state.Status) string {
	if s == state.Completed || s == state.Inactive {
		return "inactive"
	}
	return "active"
}

func processNode(d ask.Detail, run ask.WorkflowDetail, s ask.StepDetail) node {
	status, note := string(s.Status), ""
	last := ask.AttemptDetail{}
	if len(s.Attempts) > 0 {
		last = s.Attempts[len(s.Attempts)-1]
	}
	message, text := left, left
	switch s.Status {
	case state.InProgress:
		status = "started"
		if last.Progress != nil {
			status, note, _ = strings.Cut(cmp.Or(last.Progress.Note, status), ": ")
		}
	case state.Failed:
		status, message = "error", last.Message
		if last.Text != "" {
			text = last.Text
		}
	default:
		note = last.Message
	}
	at := run.Created
	for _, t := range []time.Time{last.Claimed, last.Started, last.Ended} {
		if !t.IsZero() {
			at = t
		}
	}
	elapsed := ""
	if last.Elapsed > 0 {
		elapsed = strconv.FormatFloat(last.Elapsed, 'f', -1, 64)
	}
	return node{name: "process", attrs: []string{"version", strconv.Itoa(max(1, d.Manifest.Version)), "note", note, "lifecycle", string(reached(d, s, last)), "laneId", string(d.Manifest.Lane),
		"elapsed", elapsed, "attempts", strconv.Itoa(len(s.Attempts)), "datetime", layout.FormatTime(at), "context", "", "status", status, "name", string(s.Step),
		"errorMessage", message, "errorText", text}}
}

// reached is the milestone that an attempt reached: that which its robot told, else the step's own, which may be
// yet to come. Attempts do not name milestones; one that a robot told has the time of its attempt's end.
func reached(d ask.Detail, s ask.StepDetail, last ask.AttemptDetail) layout.Name {
	own := map[layout.Name]bool{state.Registered: true}
	for _, run := range d.Workflows {
		for _, other := range run.Steps {
			own[other.Milestone] = true
		}
	}
	for _, m := range slices.Sorted(maps.Keys(d.Milestones)) {
		if !own[m] && !last.Ended.IsZero() && d.Milestones[m].Equal(last.Ended) {
			return m
		}
	}
	return s.Milestone
}

func (c *Calls) lifecycle(w http.ResponseWriter, r *http.Request) error {
	d, name, err := c.show(r)
	if err != nil {
		return err
	}
	n := node{name: "lifecycle", attrs: []string{"objectId", name}}
	for _, m := range slices.SortedFunc(maps.Keys(d.Milestones), func(a, b layout.Name) int {
		return cmp.Or(d.Milestones[a].Compare(d.Milestones[b]), cmp.Compare(a, b))
	}) {
		n.kids = append(n.kids, node{name: "milestone", attrs: []string{"date", layout.FormatTime(d.Milestones[m]), "version", strconv.Itoa(max(1, d.Manifest.Version))}, text: string(m)})
	}
	send(w, http.StatusOK, n)
	return nil
}

func (c *Calls) templates(w http.ResponseWriter, _ *http.Request) error {
	return sendJSON(w, http.StatusOK, c.d.Ask.Workflows())
}

func (c *Calls) template(w http.ResponseWriter, r *http.Request) error {
	_, d, err := c.d.Ask.WorkflowText(r.PathValue("workflow"))
	if err != nil {
		return err
	}
	type process struct {
		Name  string `json:"name"`
		Label string `json:"label"`
	}
	var out struct {
		Processes []process `json:"processes"`
	}
	for _, s := range d.Steps {
		out.Processes = append(out.Processes, process{s.Name, s.Name})
	}
	return sendJSON(w, http.StatusOK, out)
}

func sendJSON(w http.ResponseWriter, status int, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(data, '\n')) // who asked is gone
	return nil
}
