package desk

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"bagpipe/engine/act"
	"bagpipe/engine/ask"
	"bagpipe/engine/catalog"
	"bagpipe/engine/delivery"
	"bagpipe/engine/disposal"
	"bagpipe/engine/fault"
	"bagpipe/engine/folder"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/intake"
	"bagpipe/engine/ledger"
	"bagpipe/engine/schedule"
	"bagpipe/engine/search"
	"bagpipe/engine/settings"
	"bagpipe/engine/state"
	"bagpipe/engine/web/access"
	"bagpipe/layout"
)

// Rooms are what the web asks and acts through.
type Rooms struct {
	Ask      *ask.Answers
	Act      *act.Acts
	Intake   *intake.Intake
	Settings *settings.Source
	Lender   Lender // nil: no engine lends steps here
	Capabilities
}

// Capabilities are the rooms that do one thing each, of which pages tell how it stands.
type Capabilities struct {
	Schedule *schedule.Keeper
	Delivery *delivery.Keeper
	Catalog  *catalog.Keeper
	Folders  *folder.Folders
	Disposal *disposal.Keeper
	Search   *search.Searches
}

// Words puts a remedy into words for people at a shell.
type Words interface {
	// Command is the command of a remedy; "": there is none.
	Command(fault.Remedy) string
	// With appends remedies to a text.
	With(text string, remedies ...fault.Remedy) string
}

// Place is where the web stands, and what it needs from outside.
type Place struct {
	Root     string // the workspace's folder
	Base     string // begins every address: / or /archive/
	Version  string // of the program
	ReadOnly bool   // no acts
	Health   func() error
	Words    Words
	Now      func() time.Time
	Random   io.Reader
	Log      *slog.Logger
}

// Desk is the rooms, as requests reach them.
type Desk struct {
	Rooms
	Place
	Accounts *access.Book
	Pulse    Pulse
	Pictures Pictures
	Presence Presence
	refs     refs
}

type whoKey struct{}

// With gives a context in which who asks.
func With(ctx context.Context, who access.Who) context.Context {
	return context.WithValue(ctx, whoKey{}, who)
}

// Who is the account that asks; the zero Who may do nothing.
func Who(ctx context.Context) access.Who {
	who, _ := ctx.Value(whoKey{}).(access.Who)
	return who
}

type requestKey struct{}

// Answering gives a context of a call that has a key; commits made in it name the call.
func Answering(ctx context.Context, request string) context.Context {
	return context.WithValue(ctx, requestKey{}, request)
}

// AnsweringMany gives the context of a call that makes several commits: the answer to it can
// not be read from them.
func AnsweringMany(ctx context.Context) context.Context {
	if request := requestOf(ctx); request != "" {
		return Answering(ctx, request+" many")
	}
	return ctx
}

// RequestFor names a call whose answer is read from its commits in a way of its own, which what says; "": it
// has no key.
func RequestFor(ctx context.Context, what string) string {
	if request := requestOf(ctx); request != "" {
		return request + " " + what
	}
	return ""
}

func requestOf(ctx context.Context) string {
	request, _ := ctx.Value(requestKey{}).(string)
	return request
}

// Acts are the decisions of who asks, which needs a role for them.
func (d *Desk) Acts(ctx context.Context, needs access.Role) (*act.Acts, error) {
	by, err := d.by(ctx, needs)
	if err != nil {
		return nil, err
	}
	return d.Act.As(by), nil
}

// by is who asks as the cause of commits, which needs a role for them.
func (d *Desk) by(ctx context.Context, needs access.Role) (ledger.Actor, error) {
	who := Who(ctx)
	switch {
	case d.ReadOnly:
		return ledger.Actor{}, ErrReadOnly
	case !who.Role.May(needs):
		d.Log.Warn("refused: the role does not do", "name", who.Name, "role", string(who.Role), "needs", string(needs))
		return ledger.Actor{}, NeedsRole(who, needs)
	}
	by := ledger.PersonActor(gitstore.Signature{Name: who.Name, Email: who.Email})
	by.Request = requestOf(ctx)
	return by, nil
}

// Whole refuses accounts that are confined to collections: the answer is about all of them.
func (d *Desk) Whole(ctx context.Context) error {
	if who := Who(ctx); len(who.Collections) > 0 {
		return NeedsAll(who)
	}
	return nil
}

// Item finds the item that ref names, if the account reaches it.
func (d *Desk) Item(ctx context.Context, ref string) (layout.ItemID, error) {
	id, err := d.Ask.Resolve(ctx, ref)
	if err != nil {
		return "", err
	}
	if err := d.Reach(ctx, id); err != nil {
		return "", ledger.NoItem(ref) // as if it were not there
	}
	return id, nil
}

// Reach refuses items of collections that the account does not reach.
func (d *Desk) Reach(ctx context.Context, id layout.ItemID) error {
	who := Who(ctx)
	if len(who.Collections) == 0 {
		return nil
	}
	of, err := d.Ask.CollectionOf(ctx, id)
	if err == nil && !who.Reaches(string(of)) {
		err = ledger.NoItem(string(id))
	}
	return err
}

// Allowed are the methods that a mux, whose pattern without one answers all else, has for the path of a request; "": it
// has no such path.
func Allowed(mux *http.ServeMux, r *http.Request) string {
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		as := *r
		as.Method = method
		if _, pattern := mux.Handler(&as); strings.Contains(pattern, " ") {
			allowed = append(allowed, method)
		}
	}
	return strings.Join(allowed, ", ")
}

// Status is the status of HTTP that an error is.
func Status(err error) int {
	var illegal *state.IllegalError
	switch {
	case err == nil:
		return http.StatusOK
	case errors.Is(err, ErrForbidden), errors.Is(err, ErrReadOnly), errors.Is(err, gitstore.ErrReadOnly):
		return http.StatusForbidden
	case fault.Is(err, fault.NotFound):
		return http.StatusNotFound
	case fault.Is(err, fault.Invalid):
		return http.StatusBadRequest
	case errors.As(err, &illegal), fault.Is(err, fault.Refused), ledger.IsRefused(err):
		return http.StatusConflict
	case fault.Is(err, fault.Busy):
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}
