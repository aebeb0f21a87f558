package workdo

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"bagpipe/engine/act"
	"bagpipe/engine/ask"
	"bagpipe/engine/fault"
	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/engine/web/access"
	"bagpipe/layout"
)

// told is a process as a robot tells it.
type told struct {
	XMLName   xml.Name `xml:"process"`
	Name      string   `xml:"name,attr"`
	Status    string   `xml:"status,attr"`
	Elapsed   string   `xml:"elapsed,attr"`
	Lifecycle string   `xml:"lifecycle,attr"`
	Note      string   `xml:"note,attr"`
	Message   string   `xml:"message,attr"`
	Text      string   `xml:"text,attr"`

	ErrorMessage string `xml:"errorMessage,attr"` // as Stanford's clients send it
	ErrorText    string `xml:"errorText,attr"`
}

// toldFlow is a workflow as a client sends it.
type toldFlow struct {
	XMLName   xml.Name `xml:"workflow"`
	Processes []struct {
		Name string `xml:"name,attr"`
	} `xml:"process"`
}

// read decodes a body; false: there is none.
func read(r *http.Request, v any) (bool, error) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return false, badRequest{err}
	}
	if strings.TrimSpace(string(data)) == "" {
		return false, nil
	}
	if err := xml.Unmarshal(data, v); err != nil {
		return false, badRequest{fmt.Errorf("the body: %w", err)}
	}
	return true, nil
}

// initiate starts a workflow. One that is active already is left as it is.
func (c *Calls) initiate(w http.ResponseWriter, r *http.Request) error {
	acts, err := c.d.Acts(r.Context(), access.Operator)
	if err != nil {
		return err
	}
	id, name, err := c.object(r)
	if err != nil {
		return err
	}
	m, err := c.d.Ask.Manifest(id)
	if err == nil {
		err = startsAs(r.URL.Query(), m)
	}
	if err != nil {
		return err
	}
	workflow := r.PathValue("workflow")
	_, plan, err := c.d.Ask.WorkflowText(workflow)
	if err != nil {
		return badRequest{err}
	}
	var sent toldFlow
	if given, err := read(r, &sent); err != nil {
		return err
	} else if given {
		if err := same(sent, plan); err != nil {
			return err
		}
	}
	status := http.StatusOK
	if !c.active(r.Context(), id, workflow) {
		_, err := acts.Start(r.Context(), id, workflow, time.Time{})
		if err != nil && !c.active(r.Context(), id, workflow) { // another call may have been first
			return err
		}
		if err == nil {
			status = http.StatusCreated
		}
	}
	d, err := c.d.Ask.Show(r.Context(), id)
	if err != nil {
		return err
	}
	run, err := latest(d, workflow)
	if err != nil {
		return err
	}
	send(w, status, workflowNode(d, run, name))
	return nil
}

// startsAs refuses to start a workflow in another lane, or for another version, than the item's: clients of Stanford's
// server say both.
func startsAs(q url.Values, m layout.Manifest) error {
	lane, version := q.Get("lane-id"), q.Get("version")
	const anyLane = "default" // as those clients call it
	switch has := strconv.Itoa(max(1, m.Version)); {
	case lane != "" && lane != anyLane && lane != string(m.Lane):
		return fault.New(fault.Refused, fmt.Sprintf("the item is in lane %s, not %s", m.Lane, lane))
	case version != "" && version != has:
		return fault.New(fault.Refused, fmt.Sprintf("the item is at version %s, not %s", has, version))
	}
	return nil
}

// same refuses a workflow whose steps are not those of the definition in force.
func same(sent toldFlow, plan *state.Definition) error {
	if len(sent.Processes) == 0 {
		return nil
	}
	var asked, has []string
	for _, p := range sent.Processes {
		asked = append(asked, p.Name)
	}
	for i := range plan.Steps {
		has = append(has, plan.Steps[i].Name)
	}
	slices.Sort(asked)
	slices.Sort(has)
	if !slices.Equal(asked, has) {
		return fault.New(fault.Refused, fmt.Sprintf("workflow %s has the steps %s, not %s", plan.Name, strings.Join(has, ", "), strings.Join(asked, ", ")))
	}
	return nil
}

func (c *Calls) active(ctx context.Context, id layout.ItemID, workflow string) bool {
	d, err := c.d.Ask.Show(ctx, id)
	if err != nil {
		return false
	}
	run, err := latest(d, workflow)
	return err == nil && activity(run.Status) == "active"
}

// update changes the status of a step.
func (c *Calls) update(w http.ResponseWriter, r *http.Request) error {
	acts, err := c.d.Acts(r.Context(), access.Operator)
	if err != nil {
		return err
	}
	var t told
	given, err := read(r, &t)
	switch {
	case err != nil:
		return err
	case !given || t.Status == "":
		return badRequest{errors.New(`expected a body such as <process name="NAME" status="completed"/>`)}
	case t.Name != r.PathValue("step"):
		return badRequest{fmt.Errorf("the body is about step %q, the address about %q", t.Name, r.PathValue("step"))}
	}
	for {
		// What changed meanwhile may have been another step: it is looked at again.
		ref, err := c.updateAsSeen(r, acts, t)
		if errors.Is(err, ledger.ErrChanged) && r.Context().Err() == nil {
			continue
		}
		if err != nil {
			return err
		}
		return c.next(w, ref)
	}
}

// updateAsSeen changes a step whose status is the one that the caller names; it answers
// ledger.ErrChanged when the item changed since it was looked at.
func (c *Calls) updateAsSeen(r *http.Request, acts *act.Acts, t told) (ref ledger.StepRef, err error) {
	id, _, err := c.object(r)
	if err != nil {
		return ref, err
	}
	stamp, err := c.d.Ask.Stamp(id)
	if err != nil {
		return ref, err
	}
	d, err := c.d.Ask.Show(r.Context(), id)
	if err != nil {
		return ref, err
	}
	run, step, err := stepOf(d, r.PathValue("workflow"), t.Name)
	if err != nil {
		return ref, err
	}
	ctx := r.Context()
	if wants := r.URL.Query().Get("current-status"); wants != "" {
		if statusOf(wants) != step.Status {
			return ref, fault.New(fault.Refused, fmt.Sprintf("step %s is %s, not %s", step.Step, step.Status, wants))
		}
		ctx = ledger.Expecting(ctx, id, stamp)
	}
	ref = ledger.StepRef{Item: id, Workflow: run.Workflow, Step: step.Step}
	return ref, c.change(ctx, acts, ref, step, t)
}

// statusOf is the status that a word of WorkDo stands for.
func statusOf(word string) state.Status {
	switch word {
	case "waiting", "queued":
		return state.Waiting
	case "completed":
		return state.Completed
	case "skipped":
		return state.Skipped
	case "error", "exception", "failed":
		return state.Failed
	}
	return state.InProgress
}

func (c *Calls) change(ctx context.Context, acts *act.Acts, ref ledger.StepRef, step ask.StepDetail, t told) error {
	o := act.Outcome{Status: statusOf(t.Status), Message: t.Note, Text: t.Text + t.ErrorText}
	if t.Elapsed != "" {
		seconds, err := strconv.ParseFloat(t.Elapsed, 64)
		if err != nil || seconds < 0 || seconds > 1e9 {
			return badRequest{fmt.Errorf("elapsed %q: expected seconds", t.Elapsed)}
		}
		o.Elapsed = time.Duration(seconds * float64(time.Second))
	}
	if t.Lifecycle != "" {
		m, err := layout.ParseName(t.Lifecycle)
		if err != nil {
			return badRequest{fmt.Errorf("lifecycle: %w", err)}
		}
		o.Milestones = []layout.Name{m}
	}
	var err error
	switch o.Status {
	case state.Waiting:
		err = giveBack(ctx, acts, ref, step, t)
	case state.InProgress:
		o.Note = strings.TrimSuffix(t.Status+": "+t.Note, ": ")
		_, err = acts.Tell(ctx, ref, o)
	case state.Failed:
		o.Message = strings.TrimSpace(t.Message + t.ErrorMessage)
		if o.Message == "" {
			o.Message = t.Note
		}
		_, err = acts.Tell(ctx, ref, o)
	default:
		if o.Message == "" {
			o.Message = t.Message
		}
		_, err = acts.Tell(ctx, ref, o)
	}
	return err
}

// giveBack lets a step wait again, whatever became of it.
func giveBack(ctx context.Context, acts *act.Acts, ref ledger.StepRef, step ask.StepDetail, t told) (err error) {
	switch step.Status {
	case state.Waiting:
	case state.InProgress:
		_, err = acts.Tell(ctx, ref, act.Outcome{Status: state.Waiting, Message: t.Note})
	case state.Failed:
		_, err = acts.Retry(ctx, ref, t.Note)
	default:
		_, err = acts.Reset(ctx, act.SeenStep{StepRef: ref, Status: step.Status}, false, t.Note)
	}
	return err
}

// next answers with the steps of the workflow that can be begun now.
func (c *Calls) next(w http.ResponseWriter, ref ledger.StepRef) error {
	x, err := c.d.Ask.Why(ref.Item, ref.Workflow, "")
	if err != nil {
		return err
	}
	type next struct {
		Druid    string      `json:"druid"`
		Workflow string      `json:"workflow"`
		Process  layout.Name `json:"process"`
		Status   string      `json:"status"`
	}
	out := map[string][]next{"next_steps": {}}
	for _, s := range x.Steps {
		if slices.Contains([]string{"ready", "manual", "limit"}, s.Code) {
			out["next_steps"] = append(out["next_steps"], next{c.known(ref.Item), base(s.Workflow), s.Step, "waiting"})
		}
	}
	return sendJSON(w, http.StatusOK, out)
}

// skipAll skips every step of a workflow that is not done, in order.
func (c *Calls) skipAll(w http.ResponseWriter, r *http.Request) error {
	acts, err := c.d.Acts(r.Context(), access.Operator)
	if err != nil {
		return err
	}
	d, _, err := c.show(r)
	if err != nil {
		return err
	}
	run, err := latest(d, r.PathValue("workflow"))
	if err != nil {
		return err
	}
	open := map[layout.Name]bool{}
	for _, s := range run.Steps {
		if s.Status != state.Completed && s.Status != state.Skipped {
			open[s.Step] = true
		}
	}
	// Steps need not stand in the order in which they need each other.
	for len(open) > 0 {
		var refused error
		before := len(open)
		for _, s := range slices.Sorted(maps.Keys(open)) {
			_, err := acts.Decide(r.Context(), ledger.StepRef{Item: d.Manifest.Item, Workflow: run.Workflow, Step: s}, state.Skipped, r.URL.Query().Get("note"))
			switch {
			case err == nil:
				delete(open, s)
			case ledger.IsRefused(err):
				refused = err
			default:
				return err
			}
		}
		if len(open) == before {
			return refused
		}
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// remove refuses: nothing is taken out of the history.
func (c *Calls) remove(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Allow", "GET, PUT, POST")
	http.Error(w, "a workflow is never removed; the act deactivate of the item takes it out of all queues", http.StatusMethodNotAllowed)
	return nil
}
