package workdo

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"bagpipe/engine/fault"
	"bagpipe/engine/state"
	"bagpipe/engine/web/internal/desk"
	"bagpipe/layout"
)

// Calls answers robots.
type Calls struct{ d *desk.Desk }

// New gives the calls.
func New(d *desk.Desk) *Calls { return &Calls{d} }

// call answers a request, or gives the error to be told.
type call func(w http.ResponseWriter, r *http.Request) error

// route is a call, and the parameters that it takes, with spaces between them.
type route struct {
	do    call
	takes string
}

// routes are the calls, by the patterns of their paths.
func routes(c *Calls) map[string]route {
	return map[string]route{
		"GET /workflow_queue":                                  {c.query, "waiting completed error workflow lane-id limit count-only"},
		"GET /workflow_queue/lane_ids":                         {c.lanes, "step workflow"},
		"GET /workflow_queue/all_queued":                       {c.queued, "hours-ago limit"},
		"GET /workflows/{workflow}/{step}":                     {c.stepQueue, "lane-id limit"},
		"GET /queues/{name}":                                   {c.namedQueue, "lane-id limit"},
		"GET /objects/{object}":                                {c.workflows, ""},
		"GET /objects/{object}/workflows":                      {c.workflows, ""},
		"GET /objects/{object}/workflows/{workflow}":           {c.workflow, ""},
		"GET /objects/{object}/workflows/{workflow}/{step}":    {c.process, ""},
		"GET /objects/{object}/lifecycle":                      {c.lifecycle, ""},
		"PUT /objects/{object}/workflows/{workflow}":           {c.initiate, "lane-id version"},
		"POST /objects/{object}/workflows/{workflow}":          {c.initiate, "lane-id version"},
		"PUT /objects/{object}/workflows/{workflow}/{step}":    {c.update, "current-status"},
		"POST /objects/{object}/workflows/{workflow}/skip-all": {c.skipAll, "note"},
		"DELETE /objects/{object}/workflows/{workflow}":        {c.remove, ""},
		"GET /workflow_templates":                              {c.templates, ""},
		"GET /workflow_templates/{workflow}":                   {c.template, ""},
	}
}

// checkParameters refuses parameters that a call does not take: one that is misspelt would narrow nothing.
func (to route) checkParameters(r *http.Request) error {
	takes := strings.Fields(to.takes)
	for _, name := range slices.Sorted(maps.Keys(r.URL.Query())) {
		switch {
		case slices.Contains(takes, name):
		case len(takes) == 0:
			return fault.New(fault.Invalid, fmt.Sprintf("parameter %q: this call takes none", name))
		default:
			return fault.New(fault.Invalid, fmt.Sprintf("parameter %q: this call takes %s", name, strings.Join(takes, ", ")))
		}
	}
	return nil
}

// Routes are the patterns of the calls, whose paths begin after workflow/.
func Routes() []string { return slices.Sorted(maps.Keys(routes(&Calls{}))) }

// Handler answers requests whose paths begin after workflow/.
func (c *Calls) Handler() http.Handler {
	mux := http.NewServeMux()
	for pattern, to := range routes(c) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			err := to.checkParameters(r)
			if err == nil {
				err = to.do(w, r)
			}
			if err != nil {
				c.refuse(w, r, err)
			}
		})
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Clients of both forms are about: workflow/objects/… and workflow/dor/objects/….
		if rest, ok := strings.CutPrefix(r.URL.Path, "/dor/"); ok {
			r2 := r.Clone(r.Context())
			r2.URL.Path, r2.URL.RawPath = "/"+rest, ""
			r = r2
		}
		mux.ServeHTTP(w, r)
	})
}

// badRequest is an error whose status is 400, whatever its kind.
type badRequest struct{ error }

func (e badRequest) Unwrap() error { return e.error }

func (c *Calls) refuse(w http.ResponseWriter, r *http.Request, err error) {
	status := desk.Status(err)
	if _, bad := err.(badRequest); bad {
		status = http.StatusBadRequest
	}
	if status == http.StatusInternalServerError {
		c.d.Log.Error("a call could not be answered", "path", r.URL.Path, "error", err)
	}
	http.Error(w, c.d.Said(err), status)
}

// Strangers refuses who was not let in.
func (c *Calls) Strangers(w http.ResponseWriter, _ *http.Request, _ error) {
	w.Header().Add("WWW-Authenticate", `Bearer realm="bagpipe"`)
	w.Header().Add("WWW-Authenticate", `Basic realm="bagpipe"`)
	http.Error(w, "a token is needed", http.StatusUnauthorized)
}

// ref reads WF:STEP, or dor:WF:STEP; of a STEP alone the workflow is given beside.
func ref(text, workflow string) (state.Ref, error) {
	parts := strings.Split(text, ":")
	if len(parts) == 3 { // the repository, of which there is one
		parts = parts[1:]
	}
	if len(parts) == 1 && workflow != "" {
		parts = []string{workflow, parts[0]}
	}
	if len(parts) != 2 {
		return state.Ref{}, fault.New(fault.Invalid, fmt.Sprintf("%q: expected WORKFLOW:STEP", text))
	}
	r, err := state.ParseStepRef(parts[0] + "/" + parts[1])
	if err != nil {
		return r, badRequest{err}
	}
	return r, nil
}

// url is the address of an object.
func (c *Calls) url(r *http.Request, id string) string {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + r.Host + c.d.Base + "workflow/objects/" + id
}

// known is what robots know an item by: its druid where it has one, else its identifier.
func (c *Calls) known(id layout.ItemID) string {
	if m, err := c.d.Ask.Manifest(id); err == nil {
		if druid := m.Identifiers["druid"]; druid != "" {
			return "druid:" + strings.TrimPrefix(druid, "druid:")
		}
	}
	return string(id)
}

// object is the item that a path names, and what robots know it by.
func (c *Calls) object(r *http.Request) (layout.ItemID, string, error) {
	name := r.PathValue("object")
	id, err := c.d.Object(r.Context(), name)
	return id, cmp.Or(name, string(id)), err
}
