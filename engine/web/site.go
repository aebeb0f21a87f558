package web

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"bagpipe/engine/fault"
	"bagpipe/engine/web/access"
	"bagpipe/engine/web/internal/api"
	"bagpipe/engine/web/internal/bulk"
	"bagpipe/engine/web/internal/desk"
	"bagpipe/engine/web/internal/door"
	"bagpipe/engine/web/internal/pages"
	"bagpipe/engine/web/internal/upload"
	"bagpipe/engine/web/internal/workdo"
)

// Rooms, Capabilities, Place, Words and Proxy are what the parts of a Site need.
type (
	Rooms        = desk.Rooms
	Capabilities = desk.Capabilities
	Place        = desk.Place
	Words        = desk.Words
	Proxy        = door.Proxy
)

// Options say how a Site is reached, and by whom.
type Options struct {
	Hosts   []string // names it answers to, in small letters
	Local   bool     // it listens on this machine alone, and answers to its names
	TLS     bool
	Proxy   Proxy
	Watched http.Handler // answers /metrics and /healthz
}

// Site is the pages and calls of one workspace.
type Site struct {
	o     Options
	desk  *desk.Desk
	door  *door.Door
	files *upload.Uploads
}

// New gives the site of a workspace whose items are loaded. Place.Base begins and ends with
// a slash.
func New(rooms Rooms, place Place, o Options) (*Site, error) {
	if !strings.HasPrefix(place.Base, "/") || !strings.HasSuffix(place.Base, "/") {
		return nil, fault.New(fault.Invalid, fmt.Sprintf("base %q: expected a path such as /archive/", place.Base))
	}
	accounts := access.Open(place.Root)
	asked := &desk.Desk{Rooms: rooms, Place: place, Accounts: accounts}
	return &Site{o: o, desk: asked, files: upload.New(asked),
		door: &door.Door{Accounts: accounts, Proxy: o.Proxy, Base: place.Base, Secure: o.TLS, Now: place.Now, Random: place.Random}}, nil
}

// robotsRoot begins the calls of WorkDo.
const robotsRoot = "workflow"

// Link is the path, from the server's root, that lets whoever opens it in, once, as who.
func (s *Site) Link(who access.Who) (string, error) {
	secret, err := s.door.Link(who)
	return s.desk.Base + "signin?once=" + url.QueryEscape(secret), err
}

// Handler answers every request.
func (s *Site) Handler() (http.Handler, error) {
	acts := bulk.New(s.desk)
	people, err := pages.New(s.desk, s.door, s.files, acts)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /healthz", s.o.Watched)
	mux.Handle("/static/", people.Static())
	mux.Handle("/signin", people.SignIn())
	robots := workdo.New(s.desk)
	mux.Handle("/"+robotsRoot+"/", http.StripPrefix("/"+robotsRoot, s.known(robots.Handler(), robots.Strangers)))
	programs := api.New(s.desk, acts)
	uploads := strings.TrimSuffix(api.Uploads, "/")
	files, err := s.files.Handler(strings.TrimSuffix(s.desk.Base, "/") + api.Uploads)
	if err != nil {
		return nil, err
	}
	files = s.known(http.StripPrefix(uploads, files), programs.Strangers)
	mux.Handle(uploads, files)
	mux.Handle(api.Uploads, files)
	metrics := s.o.Watched
	if !s.o.Local { // figures of every collection
		metrics = s.known(metrics, programs.Strangers)
	}
	mux.Handle("GET /metrics", metrics)
	mux.Handle(api.Root, s.known(programs.Handler(), programs.Strangers))
	mux.Handle("/", s.known(people.Handler(), people.Strangers))
	own := http.NewCrossOriginProtection()
	var all http.Handler = own.Handler(mux)
	if base := strings.TrimSuffix(s.desk.Base, "/"); base != "" {
		all = http.StripPrefix(base, all)
	}
	return s.guarded(bounded(all, func(r *http.Request) bool {
		at := "/" + strings.TrimPrefix(r.URL.Path, s.desk.Base)
		return at == "/inbox" && r.Method == http.MethodPost || strings.HasPrefix(at, uploads) || api.Made(at, r.Method)
	})), nil
}

// sweep tends the uploads, now and every hour, until ctx ends.
func (s *Site) sweep(ctx context.Context) {
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	for !s.desk.ReadOnly {
		if err := s.files.Sweep(); err != nil {
			s.desk.Log.Warn("uploads could not be tended", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Follow takes in what others commit, until ctx ends, where no run does.
func (s *Site) Follow(ctx context.Context) {
	const look = 300 * time.Millisecond
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			err := s.desk.Ask.Refresh(ctx)
			if err == nil {
				_, err = s.desk.Settings.CatchUp(ctx)
			}
			if err != nil && ctx.Err() == nil {
				s.desk.Log.Warn("what others committed was not taken in", "error", err)
			}
		}
	}
}
