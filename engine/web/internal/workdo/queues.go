package workdo

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"bagpipe/engine/ask"
	"bagpipe/engine/fault"
	"bagpipe/engine/state"
	"bagpipe/engine/web/internal/desk"
	"bagpipe/layout"
)

// mostListed is how many objects an answer holds that asks for no limit: what would be more
// is asked for in parts.
const mostListed = 10_000

// limitOf is how many objects are asked for, from 1 to mostListed.
func limitOf(r *http.Request) (int, error) {
	n, err := desk.Number("limit", r.URL.Query().Get("limit"), mostListed, mostListed)
	return cmp.Or(n, mostListed), err
}

// query lists the items where a step is ready, or failed, or is done.
func (c *Calls) query(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	limit, err := limitOf(r)
	if err != nil {
		return err
	}
	workflow := q.Get("workflow")
	if text := q.Get("error"); text != "" {
		if q.Has("waiting") || q.Has("completed") || q.Has("lane-id") {
			return fault.New(fault.Invalid, "error=WORKFLOW:STEP stands without waiting, completed and lane-id")
		}
		return c.errors(w, r, text, workflow, limit)
	}
	var done []state.Ref
	for _, text := range q["completed"] {
		d, err := ref(text, workflow)
		if err != nil {
			return err
		}
		done = append(done, d)
	}
	if text := q.Get("waiting"); text != "" {
		step, err := ref(text, workflow)
		if err != nil {
			return err
		}
		rows, err := c.ready(r, step.String(), limit, done)
		if err != nil {
			return err
		}
		return c.objects(w, r, node{name: "objects"}, rows)
	}
	if len(done) != 1 {
		return fault.New(fault.Invalid, "expected waiting=WORKFLOW:STEP, error=WORKFLOW:STEP, or workflow=WORKFLOW&completed=STEP")
	}
	f := ask.Filter{Workflow: done[0].Workflow, Step: done[0].Step, Status: state.Completed, Lane: layout.Name(q.Get("lane-id"))}
	if within := desk.Within(r.Context()); len(within) > 0 {
		f.More = &ask.More{Within: within}
	}
	items, err := c.d.Ask.Items(f, ask.Page{Limit: limit})
	if err != nil {
		return err
	}
	var rows []object
	for _, it := range items {
		rows = append(rows, object{id: it.Item})
	}
	return c.objects(w, r, node{name: "objects"}, rows)
}

// object is one row of a queue.
type object struct {
	id      layout.ItemID
	message string // of a failure
}

// ready lists what waits in a queue and could be begun: by robots, or by people.
func (c *Calls) ready(r *http.Request, which string, limit int, done []state.Ref) ([]object, error) {
	rows, err := c.d.Ask.Queue(ask.QueueAsk{Which: which, Limit: limit, Within: desk.Within(r.Context()), Lane: layout.Name(r.URL.Query().Get("lane-id")), Done: done})
	if err != nil {
		return nil, err
	}
	rows = slices.DeleteFunc(rows, func(row ask.QueueRow) bool { return row.Why != "" }) // the step is disabled
	var out []object
	for _, row := range rows {
		out = append(out, object{id: row.Item})
	}
	return out, nil
}

// objects answers with rows, or with how many there are.
func (c *Calls) objects(w http.ResponseWriter, r *http.Request, n node, rows []object) error {
	n.attrs = append(n.attrs, "count", strconv.Itoa(len(rows)))
	if r.URL.Query().Get("count-only") != "true" {
		for _, row := range rows {
			id := c.known(row.id)
			message := left
			if row.message != "" {
				message = row.message
			}
			n.kids = append(n.kids, node{name: "object", attrs: []string{"id", id, "url", c.url(r, id), "errorMessage", message}})
		}
	}
	send(w, http.StatusOK, n)
	return nil
}

func (c *Calls) errors(w http.ResponseWriter, r *http.Request, text, workflow string, limit int) error {
	step, err := ref(text, workflow)
	if err != nil {
		return err
	}
	if err := c.d.Ask.CheckFilter(ask.Filter{Workflow: step.Workflow, Step: step.Step}); err != nil {
		return err
	}
	var rows []object
	for _, x := range ask.Members(c.d.Ask.Failures(ask.FailureFilter{Workflow: step.Workflow, Step: step.Step, Within: desk.Within(r.Context())})) {
		rows = append(rows, object{x.Item, x.Message})
	}
	if len(rows) > limit {
		rows = rows[:limit]
	}
	return c.objects(w, r, node{name: "objects"}, rows)
}

// stepQueue is the queue of a step as a thing of its own.
func (c *Calls) stepQueue(w http.ResponseWriter, r *http.Request) error {
	return c.reified(w, r, r.PathValue("workflow")+"/"+r.PathValue("step"), r.PathValue("step"))
}

func (c *Calls) namedQueue(w http.ResponseWriter, r *http.Request) error {
	return c.reified(w, r, r.PathValue("name"), r.PathValue("name"))
}

func (c *Calls) reified(w http.ResponseWriter, r *http.Request, which, id string) error {
	limit, err := limitOf(r)
	if err != nil {
		return err
	}
	rows, err := c.ready(r, which, limit, nil)
	if err != nil {
		return err
	}
	n := node{name: "workflowQueue", attrs: []string{"id", id}}
	for _, row := range rows {
		id := c.known(row.id)
		n.kids = append(n.kids, node{name: "object", attrs: []string{"id", id, "url", c.url(r, id)}})
	}
	send(w, http.StatusOK, n)
	return nil
}

// lanes lists the lanes of what waits for a step.
func (c *Calls) lanes(w http.ResponseWriter, r *http.Request) error {
	step, err := ref(r.URL.Query().Get("step"), r.URL.Query().Get("workflow"))
	if err != nil {
		return err
	}
	rows, err := c.d.Ask.Queue(ask.QueueAsk{Which: step.String(), Within: desk.Within(r.Context())})
	if err != nil {
		return err
	}
	lanes := map[string]bool{}
	n := node{name: "lanes"}
	for _, row := range rows {
		if lane := string(row.Lane); row.Why == "" && !lanes[lane] {
			lanes[lane] = true
			n.kids = append(n.kids, node{name: "lane", attrs: []string{"id", lane}})
		}
	}
	send(w, http.StatusOK, n)
	return nil
}

// queued lists what robots could have begun for some hours.
func (c *Calls) queued(w http.ResponseWriter, r *http.Request) error {
	limit, err := limitOf(r)
	if err != nil {
		return err
	}
	hours, err := desk.Number("hours-ago", r.URL.Query().Get("hours-ago"), 24*365*100, 0)
	if err != nil {
		return err
	}
	rows, err := c.d.Ask.Queue(ask.QueueAsk{For: ask.Robots, Within: desk.Within(r.Context())})
	if err != nil {
		return err
	}
	before := c.d.Now().Add(-time.Duration(hours) * time.Hour)
	n := node{name: "workflows"}
	for _, row := range rows {
		if row.Why != "" || row.Since.After(before) || len(n.kids) == limit {
			continue
		}
		n.kids = append(n.kids, node{name: "workflow", attrs: []string{"name", base(row.Workflow), "process", string(row.Step), "druid", c.known(row.Item), "laneId", string(row.Lane)}})
	}
	send(w, http.StatusOK, n)
	return nil
}

// base is a workflow's name without its number.
func base(run string) string {
	name, _ := state.Instance(run)
	return strings.TrimSpace(name)
}
