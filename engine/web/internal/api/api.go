package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"bagpipe/engine/fault"
	"bagpipe/engine/state"
	"bagpipe/engine/web/access"
	"bagpipe/engine/web/internal/bulk"
	"bagpipe/engine/web/internal/desk"
	"bagpipe/engine/web/internal/submit"
	"bagpipe/layout"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

// Root begins every call.
const Root = "/api/v1/"

// Uploads begins the calls of tus, which another handler answers.
const Uploads = Root + "uploads/"

// API answers programs.
type API struct {
	d    *desk.Desk
	acts *bulk.Acts
	sent *submit.Submissions
	huma huma.API
	mux  calls
	keys keys
}

// New registers the routes.
func New(d *desk.Desk, acts *bulk.Acts) *API {
	a := &API{d: d, acts: acts, sent: submit.New(d)}
	config := huma.DefaultConfig("Bagpipe", d.Version)
	config.RejectUnknownQueryParameters = true // a misspelt one would list everything
	config.CreateHooks = nil                   // answers are what --json prints, and nothing more
	config.Transformers = append(config.Transformers, asProblem)
	config.DocsPath, config.SchemasPath, config.OpenAPIPath = "", "", ""
	config.Servers = []*huma.Server{{URL: strings.TrimSuffix(d.Base, "/")}}
	config.Components.SecuritySchemes = map[string]*huma.SecurityScheme{"token": {Type: "http", Scheme: "bearer"}}
	config.Security = []map[string][]string{{"token": {}}}
	config.Components.Schemas = huma.NewMapRegistry("#/components/schemas/", schemaName)
	config.Components.Schemas.RegisterTypeAlias(reflect.TypeFor[layout.AttemptKey](), reflect.TypeFor[string]())
	a.huma = humago.New(&a.mux, config)
	a.registerReads()
	a.registerItems()
	a.registerActs()
	a.registerBulk()
	a.registerEvents()
	a.registerClaims()
	registerSubmissions(a)
	a.describeUploads()
	stream(a, "openapi.json", "This document", []string{"application/json"}, func(ctx huma.Context, _ *none) error {
		text, err := json.Marshal(a.huma.OpenAPI())
		if err == nil {
			ctx.SetHeader("Content-Type", "application/json")
			_, _ = ctx.BodyWriter().Write(text) // who asked is gone
		}
		return err
	})
	a.mux.HandleFunc(Root, func(w http.ResponseWriter, r *http.Request) { write(w, noCall(&a.mux.ServeMux, w, r)) })
	return a
}

// calls is a mux that knows its patterns.
type calls struct {
	http.ServeMux
	patterns []string
}

// HandleFunc registers a call. A {path} at the end of its pattern is all that follows there: of that the mux has a word of
// its own, and the document none.
func (c *calls) HandleFunc(pattern string, f func(http.ResponseWriter, *http.Request)) {
	if before, ok := strings.CutSuffix(pattern, "/{path}"); ok {
		pattern = before + "/{path...}"
	}
	c.patterns = append(c.patterns, pattern)
	c.ServeMux.HandleFunc(pattern, f)
}

// Patterns are the patterns of the calls, METHOD PATH, as the mux has them; but for those of tus, which another
// handler answers.
func Patterns() []string {
	return slices.DeleteFunc(New(&desk.Desk{}, nil).mux.patterns, func(p string) bool { return p == Root })
}

// noCall is the answer to what is no call of a mux, or none by its method; then w is told which are.
func noCall(mux *http.ServeMux, w http.ResponseWriter, r *http.Request) *Problem {
	p := &Problem{Status: http.StatusNotFound, Detail: "there is no such call; openapi.json describes them", Code: "not-found"}
	if allowed := desk.Allowed(mux, r); allowed != "" {
		w.Header().Set("Allow", allowed)
		p.Status, p.Detail, p.Code = http.StatusMethodNotAllowed, "this address takes "+allowed+", not "+r.Method, "method-not-allowed"
	}
	p.Title = http.StatusText(p.Status)
	return p
}

// schemaName tells types of one name in several packages apart.
func schemaName(t reflect.Type, hint string) string {
	name := huma.DefaultSchemaNamer(t, hint)
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if i := strings.LastIndexByte(t.PkgPath(), '/'); i >= 0 && t.Name() != "" {
		name = strings.ToUpper(t.PkgPath()[i+1:i+2]) + t.PkgPath()[i+2:] + name
	}
	return name
}

// Handler answers those who were let in.
func (a *API) Handler() http.Handler { return a.keyed(&a.mux) }

// Strangers refuses who was not let in.
func (a *API) Strangers(w http.ResponseWriter, _ *http.Request, _ error) {
	w.Header().Set("WWW-Authenticate", `Bearer realm="bagpipe"`)
	write(w, &Problem{Status: http.StatusUnauthorized, Title: "Unauthorized", Detail: "a token is needed that is known here, and in force", Code: "unauthorized"})
}

// answer is a body with nothing beside.
type answer[T any] struct{ Body T }

type none struct{}

// get registers a call that reads, for viewers.
func get[I, O any](a *API, path, summary string, f func(context.Context, *I) (O, error)) {
	huma.Register(a.huma, a.operation(http.MethodGet, path, summary), func(ctx context.Context, in *I) (*answer[O], error) {
		if who := desk.Who(ctx); !who.Role.May(access.Viewer) {
			return nil, problemOf(a.d, desk.NeedsRole(who, access.Viewer))
		}
		out, err := f(ctx, in)
		if err != nil {
			return nil, problemOf(a.d, err)
		}
		return &answer[O]{out}, nil
	})
}

// post registers a call that changes something; the desk asks for the role.
func post[I, O any](a *API, method, path, summary string, f func(context.Context, *I) (O, error)) {
	huma.Register(a.huma, a.operation(method, path, summary), func(ctx context.Context, in *I) (*answer[O], error) {
		out, err := f(ctx, in)
		if err != nil {
			return nil, problemOf(a.d, err)
		}
		return &answer[O]{out}, nil
	})
}

// stream registers a call whose answer is no JSON.
func stream[I any](a *API, path, summary string, kinds []string, f func(ctx huma.Context, in *I) error) {
	op := a.operation(http.MethodGet, path, summary)
	ok := &huma.Response{Description: "OK", Content: map[string]*huma.MediaType{}}
	for _, kind := range kinds {
		ok.Content[kind] = &huma.MediaType{Schema: &huma.Schema{Type: "string"}}
		if kind == "application/json" {
			ok.Content[kind].Schema = &huma.Schema{}
		}
	}
	op.Responses["200"] = ok
	huma.Register(a.huma, op, func(_ context.Context, in *I) (*huma.StreamResponse, error) {
		return &huma.StreamResponse{Body: func(ctx huma.Context) {
			if err := f(ctx, in); err != nil {
				_, w := humago.Unwrap(ctx)
				p := problemOf(a.d, err)
				write(w, p)
			}
		}}, nil
	})
}

// operation describes a call; every call may be answered with a Problem.
func (a *API) operation(method, path, summary string) huma.Operation {
	id := strings.ToLower(method) + "-" + strings.NewReplacer("/", "-", "{", "", "}", "", ".", "-").Replace(path)
	op := huma.Operation{OperationID: id, Method: method, Path: Root + path, Summary: summary, Responses: map[string]*huma.Response{}}
	problem := huma.SchemaFromType(a.huma.OpenAPI().Components.Schemas, reflect.TypeFor[Problem]())
	for _, status := range []int{400, 401, 403, 404, 409, 410, 412, 413, 422, 500, 503} {
		op.Responses[strconv.Itoa(status)] = &huma.Response{Description: http.StatusText(status),
			Content: map[string]*huma.MediaType{"application/problem+json": {Schema: problem}}}
	}
	return op
}

// asProblem gives the errors of huma itself the form of all others.
func asProblem(_ huma.Context, _ string, v any) (any, error) {
	own, is := v.(*huma.ErrorModel)
	if !is {
		return v, nil
	}
	p := &Problem{Title: own.Title, Status: own.Status, Detail: own.Detail, Code: "invalid"}
	if own.Status == http.StatusUnsupportedMediaType {
		p.Detail += "; expected Content-Type: application/json"
	}
	for _, e := range own.Errors {
		p.Detail += "; " + strings.TrimPrefix(e.Location+": ", ": ") + e.Message
	}
	return p, nil
}

// Listing are the parameters that narrow a list: the options of bagpipe items.
type Listing struct {
	Collection string   `query:"collection" json:"collection,omitempty"`
	Workflow   string   `query:"workflow" json:"workflow,omitempty"`
	Step       string   `query:"step" json:"step,omitempty"`
	Status     string   `query:"status" json:"status,omitempty" enum:"waiting,in-progress,completed,skipped,failed,inactive,scheduled"`
	Lane       string   `query:"lane" json:"lane,omitempty"`
	Batch      string   `query:"batch" json:"batch,omitempty"`
	Reached    string   `query:"reached" json:"reached,omitempty" doc:"a milestone"`
	Failure    string   `query:"failure" json:"failure,omitempty" doc:"somewhere in the message of a failed step"`
	Older      string   `query:"older" json:"older,omitempty" doc:"has not moved for so long, as in 36h"`
	Held       bool     `query:"held" json:"held,omitempty"`
	Parent     string   `query:"parent" json:"parent,omitempty"`
	Where      string   `query:"where" json:"where,omitempty" doc:"a condition, as in metadata.year >= 1990"`
	Text       string   `query:"q" json:"q,omitempty" doc:"somewhere in the label or in the identifiers that people know the item by, or the beginning of its own"`
	Facet      []string `query:"facet,explode" json:"facet,omitempty" doc:"NAME:VALUE as facets lists them; several of one name: any of them"`
}

// values are the parameters as the desk reads them.
func (l *Listing) values() url.Values {
	q := url.Values{}
	for name, value := range map[string]string{"collection": l.Collection, "workflow": l.Workflow, "step": l.Step, "status": l.Status, "lane": l.Lane, "batch": l.Batch,
		"reached": l.Reached, "failure": l.Failure, "older": l.Older, "parent": l.Parent, "where": l.Where, "q": l.Text} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if l.Held {
		q.Set("held", "true")
	}
	q["facet"] = l.Facet
	return q
}

// Problem is an error, as RFC 9457 has it.
type Problem struct {
	Type   string `json:"type,omitempty"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Code   string `json:"code" doc:"not-found, refused, busy, invalid, damaged, forbidden, …"`
	Why    string `json:"why,omitempty" doc:"of a step that does not go on, the code that items/{id}/why has: requires, manual, held, …"`
	Help   string `json:"help,omitempty" doc:"the detail, with the acts that would help"`
}

// Error is the detail.
func (p *Problem) Error() string { return p.Detail }

// GetStatus is the status of HTTP.
func (p *Problem) GetStatus() int { return p.Status }

// ContentType is that of problems.
func (p *Problem) ContentType(string) string { return "application/problem+json" }

// explain adds what why says of a step that is not as an act needs it.
func (p *Problem) explain(d *desk.Desk, of *state.IllegalError) {
	x, err := d.Ask.Why(of.Item, of.Workflow, of.Step)
	if err != nil || len(x.Steps) != 1 {
		return
	}
	p.Why = x.Steps[0].Code
	if remedy := x.Steps[0].Remedy; p.Help == "" && remedy.Verb != fault.None {
		p.Help = d.Words.With(p.Detail, remedy)
	}
}

// withStatus is an error whose status is known.
type withStatus struct {
	error
	status int
	code   string
}

func problemOf(d *desk.Desk, err error) *Problem {
	p := &Problem{Status: desk.Status(err), Detail: err.Error()}
	if own, ok := err.(withStatus); ok {
		p.Status, p.Code = own.status, own.code
	}
	p.Title = http.StatusText(p.Status)
	if said := d.Said(err); said != p.Detail {
		p.Help = said
	}
	var illegal *state.IllegalError
	if errors.As(err, &illegal) && illegal.Step != "" {
		p.explain(d, illegal)
	}
	if p.Code == "" {
		p.Code = map[int]string{400: "invalid", 403: "forbidden", 404: "not-found", 409: "refused", 503: "busy"}[p.Status]
	}
	if p.Status == http.StatusInternalServerError {
		p.Code = "internal"
		d.Log.Error("a call could not be answered", "error", err)
	}
	return p
}
