package pages

import (
	"net/http"
	"net/url"
	"strings"

	"bagpipe/engine/ask"
	"bagpipe/engine/fault"
	"bagpipe/engine/state"
	"bagpipe/engine/web/access"
	"bagpipe/engine/web/internal/desk"
	"bagpipe/layout"
)

// back leads from an act to the page it was done on, which says that it was done.
func back(d *desk.Desk, w http.ResponseWriter, r *http.Request, did string) (string, any, error) {
	to := own(r.PostFormValue("back"))
	path, query, _ := strings.Cut(to, "?")
	q, err := url.ParseQuery(query)
	if err != nil {
		q = url.Values{}
	}
	q.Set("did", did)
	http.Redirect(w, r, d.Base+path+"?"+q.Encode(), http.StatusSeeOther)
	return "", nil, nil
}

// upload takes files in as one drop.
func (p *Pages) upload(w http.ResponseWriter, r *http.Request) (string, any, error) {
	err := p.files.Form(w, r)
	if err == nil {
		http.Redirect(w, r, p.d.Base+"inbox?did=uploaded", http.StatusSeeOther)
	}
	return "", nil, err
}

// act acts on one item.
func (p *Pages) act(w http.ResponseWriter, r *http.Request) (string, any, error) {
	id, err := p.d.Item(r.Context(), r.PathValue("id"))
	if err != nil {
		return "", nil, err
	}
	what := r.PostFormValue("act")
	wanted := desk.Wanted{Act: what, Workflow: r.PostFormValue("workflow"), Step: layout.Name(r.PostFormValue("step")), Message: strings.TrimSpace(r.PostFormValue("message")),
		After: r.PostFormValue("after") != "", Status: state.Status(r.PostFormValue("status"))}
	if _, err := p.d.Do(r.Context(), id, wanted); err != nil {
		return "", nil, err
	}
	return back(p.d, w, r, what)
}

// retry lets a group of failures be tried again.
func (p *Pages) retry(w http.ResponseWriter, r *http.Request) (string, any, error) {
	acts, err := p.d.Acts(r.Context(), access.Operator)
	if err != nil {
		return "", nil, err
	}
	groups := p.d.Ask.Failures(ask.FailureFilter{Group: r.PathValue("group"), Within: desk.Within(r.Context())})
	if len(groups) != 1 {
		return "", nil, fault.New(fault.NotFound, "These failures are gone; others may have tried them again.")
	}
	rows, err := acts.RetryFailures(r.Context(), ask.Members(groups), r.PostFormValue("message"), false)
	if err != nil {
		return "", nil, err
	}
	var refused []string
	for _, row := range rows {
		if row.Refused != "" {
			refused = append(refused, row.Label+": "+row.Refused)
		}
	}
	if len(refused) > 0 {
		return "", nil, fault.New(fault.Refused, "Not tried again: "+strings.Join(refused, "; "))
	}
	return back(p.d, w, r, "retry")
}

// closeBatch closes a batch.
func (p *Pages) closeBatch(w http.ResponseWriter, r *http.Request) (string, any, error) {
	acts, err := p.d.Acts(r.Context(), access.Operator)
	if err == nil {
		err = p.d.Whole(r.Context())
	}
	if err == nil {
		err = acts.CloseBatch(r.Context(), layout.Name(r.PathValue("name")))
	}
	if err != nil {
		return "", nil, err
	}
	return back(p.d, w, r, "close")
}

// decideDelivery decides on a delivery.
func (p capabilities) decideDelivery(w http.ResponseWriter, r *http.Request) (string, any, error) {
	act, message := r.PostFormValue("act"), strings.TrimSpace(r.PostFormValue("message"))
	desk.Patient(w)
	if _, err := p.d.DecideDelivery(r.Context(), r.PathValue("item"), layout.Name(r.PathValue("target")), act, message); err != nil {
		return "", nil, err
	}
	return back(p.d, w, r, "delivery-"+act)
}

// sayOnDisposal has a word on a proposal.
func (p capabilities) sayOnDisposal(w http.ResponseWriter, r *http.Request) (string, any, error) {
	act, message := r.PostFormValue("act"), strings.TrimSpace(r.PostFormValue("message"))
	if _, err := p.d.SayOnDisposal(r.Context(), r.PathValue("key"), act, message); err != nil {
		return "", nil, err
	}
	return back(p.d, w, r, "disposal-"+act)
}

// orderSchedule starts, stops or fires a schedule.
func (p capabilities) orderSchedule(w http.ResponseWriter, r *http.Request) (string, any, error) {
	act := r.PostFormValue("act")
	did, err := p.d.OrderSchedule(r.Context(), r.PathValue("name"), act, r.PostFormValue("now") != "")
	switch {
	case err != nil:
		return "", nil, err
	case !did.Changed:
		return back(p.d, w, r, "nothing")
	}
	return back(p.d, w, r, "schedule-"+act)
}

// setStep enables or disables a step for all items.
func (p *Pages) setStep(w http.ResponseWriter, r *http.Request) (string, any, error) {
	acts, err := p.d.Acts(r.Context(), access.Admin)
	if err == nil {
		err = p.d.Whole(r.Context())
	}
	if err != nil {
		return "", nil, err
	}
	ref, err := state.ParseStepRef(r.PathValue("workflow") + "/" + r.PathValue("step"))
	if err != nil {
		return "", nil, fault.New(fault.Invalid, err.Error())
	}
	to, did := state.StepEnabled, "enable"
	if r.PostFormValue("status") == string(state.StepDisabled) {
		to, did = state.StepDisabled, "disable"
	}
	if _, err := acts.SetStep(r.Context(), ref, to, r.PostFormValue("message")); err != nil {
		return "", nil, err
	}
	return back(p.d, w, r, did)
}
