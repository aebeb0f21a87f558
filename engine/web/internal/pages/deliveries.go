package pages

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"

	"bagpipe/engine/delivery"
	"bagpipe/engine/fault"
	"bagpipe/engine/web/internal/desk"
	"bagpipe/layout"
)

// deliveryStates are what a list of deliveries is narrowed by.
var deliveryStates = []string{layout.DeliveryReady, layout.DeliveryWaits, layout.DeliverySending, layout.DeliveryFailed, layout.DeliveryDelivered,
	layout.DeliveryUnconfirmed, layout.DeliveryForbidden, layout.DeliveryWithdrawn, layout.DeliveryUnreadable}

// inAllStates is the value by which all deliveries are listed.
const inAllStates = "all"

type deliveriesView struct {
	Rows    []deliveryRow
	All     int // that fit
	First   int // of them, from 1 on, as far as was looked through
	Last    int
	Next    string // the page behind; "": there is none
	State   string
	To      string
	States  []string
	Targets []string
}

// deliveryRow is a delivery with what a person may decide on it.
type deliveryRow struct {
	delivery.Row
	May []decision
}

type decision struct{ Act, Word string }

// decisions are what a person may decide on a delivery as it stands.
func decisions(d *layout.Delivery) (may []decision) {
	is := func(states ...string) bool { return slices.Contains(states, d.State) }
	if is(layout.DeliveryWaits, layout.DeliveryForbidden, layout.DeliveryWithdrawn) {
		may = append(may, decision{"approve", "Approve"})
	}
	if is(layout.DeliveryFailed) || is(layout.DeliveryReady) && d.Attempts > 0 {
		may = append(may, decision{"retry", "Try it again"})
	}
	if is(layout.DeliveryReady, layout.DeliveryWaits, layout.DeliveryFailed) {
		may = append(may, decision{"refuse", "Refuse"})
	}
	if is(layout.DeliveryDelivered, layout.DeliveryUnconfirmed) && d.Engine == "" {
		may = append(may, decision{"withdraw", "Take it back"})
	}
	return may
}

// deliveries shows what goes to other systems, and why something does not.
func (p capabilities) deliveries(w http.ResponseWriter, r *http.Request) (string, any, error) {
	const most = 200
	q := r.URL.Query()
	seen, err := desk.Number("seen", q.Get("seen"), 1<<30, 0)
	if err != nil {
		return "", nil, err
	}
	v := deliveriesView{State: q.Get("state"), To: q.Get("to"), States: append([]string{inAllStates}, deliveryStates...),
		Targets: slices.Sorted(maps.Keys(p.d.Settings.Current().Settings.Targets))}
	which := delivery.Which{To: layout.Name(v.To), State: v.State, Open: v.State == "", Within: desk.Within(r.Context())}
	switch {
	case v.State != "" && !slices.Contains(v.States, v.State):
		return "", nil, fault.New(fault.Invalid, fmt.Sprintf("state %q: expected one of %v", v.State, v.States))
	case v.State == inAllStates:
		which.State = ""
	}
	if cursor := q.Get("cursor"); cursor != "" {
		after, err := delivery.ParseCursor(cursor)
		if err != nil {
			return "", nil, err
		}
		which.After = &after
	}
	desk.Patient(w)
	rows, all, err := delivery.List(r.Context(), p.d.Delivery, which, most)
	for _, row := range rows {
		v.Rows = append(v.Rows, deliveryRow{row, decisions(&row.Delivery)})
	}
	v.All, v.First, v.Last = all, seen+1, seen+len(rows)
	if len(rows) == most && v.Last < all {
		v.Next = "deliveries?" + with(q, "cursor", rows[most-1].Place().Cursor()) + "&seen=" + strconv.Itoa(v.Last)
	}
	return "deliveries", v, err
}
