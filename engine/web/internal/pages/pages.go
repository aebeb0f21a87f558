package pages

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"html/template"
	"io/fs"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"

	"bagpipe/engine/web/internal/bulk"
	"bagpipe/engine/web/internal/desk"
	"bagpipe/engine/web/internal/door"
	"bagpipe/engine/web/internal/upload"
	"bagpipe/templates"
)

// Pages answers browsers.
type Pages struct {
	d      *desk.Desk
	door   *door.Door
	files  *upload.Uploads
	acts   *bulk.Acts
	pages  map[string]*template.Template
	assets map[string]asset
	stamp  string // of the assets, in their addresses
	parts  parts
	slow   slow
}

type asset struct {
	data []byte
	kind string
}

// New reads the templates.
func New(d *desk.Desk, in *door.Door, uploads *upload.Uploads, acts *bulk.Acts) (*Pages, error) {
	p := &Pages{d: d, door: in, files: uploads, acts: acts, pages: map[string]*template.Template{}, assets: map[string]asset{}}
	if err := p.readAssets(); err != nil {
		return nil, err
	}
	base, err := template.New("").Funcs(p.words()).ParseFS(templates.Web, "web/layout.html", "web/parts.html")
	if err != nil {
		return nil, err
	}
	files, err := fs.Glob(templates.Web, "web/pages/*.html")
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		own, err := base.Clone()
		if err != nil {
			return nil, err
		}
		if p.pages[strings.TrimSuffix(path.Base(file), ".html")], err = own.ParseFS(templates.Web, file); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (p *Pages) readAssets() error {
	kinds := map[string]string{".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}
	files, err := fs.Glob(templates.Web, "web/static/*")
	if err != nil {
		return err
	}
	sum := sha256.New()
	for _, file := range files {
		kind := kinds[path.Ext(file)]
		if kind == "" {
			continue
		}
		data, err := fs.ReadFile(templates.Web, file)
		if err != nil {
			return err
		}
		p.assets[path.Base(file)] = asset{data, kind}
		sum.Write(data) // a hash takes all
	}
	p.stamp = hex.EncodeToString(sum.Sum(nil)[:6])
	return nil
}

// Static answers scripts, styles and pictures; their addresses change with what they hold.
func (p *Pages) Static() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a, ok := p.assets[path.Base(r.URL.Path)]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", a.kind)
		w.Header().Set("Cache-Control", "private, max-age=31536000, immutable")
		_, _ = w.Write(a.data) // who asked is gone
	})
}

// routes are the pages, by the patterns of their addresses.
func (p *Pages) routes() map[string]viewer {
	l, m, c, o := lists{p.d}, many{p.d, p.acts}, accounts{p.d}, capabilities{p.d}
	return map[string]viewer{
		"GET /{$}": p.overview, "GET /live": p.live,
		"GET /items": p.items, "GET /items.csv": p.table, "GET /items/{id}": p.item,
		"GET /items/{id}/files/{path...}":       p.file,
		"GET /items/{id}/log":                   p.itemLog,
		"GET /items/{id}/log/{commit}":          p.change,
		"GET /items/{id}/logs/{step}/{attempt}": p.log,
		"POST /items/{id}/acts":                 p.act,
		"GET /mine":                             l.mine,
		"GET /failures":                         l.failures,
		"POST /failures/{group}/retry":          p.retry,
		"GET /queues":                           l.queues,
		"GET /queues/{name...}":                 l.queue,
		"GET /batches":                          l.batches,
		"GET /batches/{name}":                   l.batch,
		"POST /batches/{name}/close":            p.closeBatch,
		"GET /workflows":                        l.workflows,
		"GET /workflows/{name}":                 l.workflow,
		"POST /steps/{workflow}/{step}":         p.setStep,
		"GET /search":                           o.search,
		"GET /schedules":                        o.schedules,
		"POST /schedules/{name}/acts":           o.orderSchedule,
		"GET /deliveries":                       o.deliveries,
		"POST /deliveries/{item}/{target}/acts": o.decideDelivery,
		"GET /catalogs":                         o.catalogs,
		"GET /disposals":                        o.disposals,
		"POST /disposals/{key}/acts":            o.sayOnDisposal,
		"GET /stats":                            l.stats,
		"GET /inbox":                            l.inbox,
		"POST /inbox":                           p.upload,
		"POST /bulk":                            m.preview, "GET /bulk/{id}": m.show, "POST /bulk/{id}": m.begin, "POST /bulk/{id}/stop": m.stop,
		"GET /engines": l.engines, "GET /settings": c.settings,
		"GET /users": c.list, "POST /users": c.set,
		"GET /log": l.history,
	}
}

// Routes are the patterns of the pages that are for those who were let in.
func Routes() []string { return slices.Sorted(maps.Keys((&Pages{}).routes())) }

// Handler answers those who were let in.
func (p *Pages) Handler() http.Handler {
	mux := http.NewServeMux()
	for pattern, view := range p.routes() {
		mux.Handle(pattern, p.show(view))
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if allowed := desk.Allowed(mux, r); allowed != "" {
			w.Header().Set("Allow", allowed)
			p.problem(w, r, http.StatusMethodNotAllowed, "This page takes "+allowed+", not "+r.Method+".")
			return
		}
		p.problem(w, r, http.StatusNotFound, "There is no such page.")
	})
	return mux
}

// viewer makes what a page shows; page names its template. An empty page: it was answered.
type viewer func(w http.ResponseWriter, r *http.Request) (page string, data any, err error)

// frame is what every page stands in.
type frame struct {
	Page   string
	Here   string // the address of the page, without the base
	Query  map[string][]string
	Who    string
	Role   string
	Acts   bool // the account may act here
	Admin  bool
	Whole  bool // it reaches all collections
	Data   any
	Failed string // an act that was refused
}

func (p *Pages) show(v viewer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page, data, err := v(w, r)
		switch {
		case err != nil:
			p.refuse(w, r, err)
		case page != "":
			p.render(w, r, http.StatusOK, page, data)
		}
	})
}

func (p *Pages) refuse(w http.ResponseWriter, r *http.Request, err error) {
	status := desk.Status(err)
	if status == http.StatusInternalServerError {
		p.d.Log.Error("a page could not be shown", "path", r.URL.Path, "error", err)
	}
	text := p.d.Said(err)
	if status == http.StatusNotFound { // the lists that a command would print are pages
		text = err.Error()
	}
	p.problem(w, r, status, text)
}

func (p *Pages) problem(w http.ResponseWriter, r *http.Request, status int, text string) {
	p.render(w, r, status, "problem", text)
}

// frame puts what a page shows into what every page stands in.
func (p *Pages) frame(r *http.Request, page string, data any) frame {
	who := desk.Who(r.Context())
	return frame{Page: page, Here: strings.TrimPrefix(r.URL.RequestURI(), "/"), Query: r.URL.Query(), Who: who.Name, Role: string(who.Role),
		Acts: !p.d.ReadOnly && who.Role.May("operator"), Admin: !p.d.ReadOnly && who.Role.May("admin"), Whole: p.d.Whole(r.Context()) == nil, Data: data}
}

func (p *Pages) render(w http.ResponseWriter, r *http.Request, status int, page string, data any) {
	var out bytes.Buffer
	if err := p.pages[page].ExecuteTemplate(&out, "layout", p.frame(r, page, data)); err != nil {
		p.d.Log.Error("a page could not be shown", "path", r.URL.Path, "error", err)
		http.Error(w, "this page could not be shown; the log says why", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(upright(out.Bytes())) // who asked is gone
}
