package pages

import (
	"net/http"
	"net/url"
	"strings"

	"bagpipe/engine/fault"
	"bagpipe/engine/web/internal/bulk"
	"bagpipe/engine/web/internal/desk"
	"bagpipe/layout"
)

// many are the pages of acts on many items.
type many struct {
	d    *desk.Desk
	acts *bulk.Acts
}

// preview shows what an act would be done to: the ticked items, or all of the list.
func (p many) preview(w http.ResponseWriter, r *http.Request) (string, any, error) {
	ctx := r.Context()
	if err := r.ParseForm(); err != nil {
		return "", nil, fault.New(fault.Invalid, err.Error())
	}
	var filter url.Values
	if r.PostFormValue("all") == "filter" {
		var err error
		if filter, err = url.ParseQuery(r.PostFormValue("query")); err != nil {
			return "", nil, fault.New(fault.Invalid, err.Error())
		}
	}
	items, err := p.acts.Chosen(ctx, r.PostForm["item"], filter)
	if err != nil {
		return "", nil, err
	}
	wanted := desk.Wanted{Act: r.PostFormValue("act"), Workflow: r.PostFormValue("workflow"), Step: layout.Name(r.PostFormValue("step")), Message: strings.TrimSpace(r.PostFormValue("message"))}
	seen, err := p.acts.Preview(ctx, items, wanted)
	if err != nil {
		return "", nil, err
	}
	http.Redirect(w, r, p.d.Base+"bulk/"+seen.ID, http.StatusSeeOther)
	return "", nil, nil
}

func (p many) show(_ http.ResponseWriter, r *http.Request) (string, any, error) {
	seen, err := p.acts.Show(r.Context(), r.PathValue("id"))
	return "bulk", seen, err
}

func (p many) begin(w http.ResponseWriter, r *http.Request) (string, any, error) {
	seen, err := p.acts.Begin(r.Context(), r.PathValue("id"))
	return p.lead(w, r, seen, err)
}

func (p many) stop(w http.ResponseWriter, r *http.Request) (string, any, error) {
	seen, err := p.acts.Stop(r.Context(), r.PathValue("id"))
	return p.lead(w, r, seen, err)
}

func (p many) lead(w http.ResponseWriter, r *http.Request, seen bulk.Act, err error) (string, any, error) {
	if err == nil {
		http.Redirect(w, r, p.d.Base+"bulk/"+seen.ID, http.StatusSeeOther)
	}
	return "", nil, err
}
