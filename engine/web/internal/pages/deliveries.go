package pages

import (
	"fmt"
	"maps"
	"net/http"
	"slices"

	"bagpipe/engine/delivery"
	"bagpipe/engine/fault"
	"bagpipe/engine/web/internal/desk"
	"bagpipe/layout"
)

// deliveryStates are what a list of deliveries is narrowed by.
var deliveryStates = []string{layout.DeliveryReady, layout.DeliveryWaits, layout.DeliverySending, layout.DeliveryFailed, layout.DeliveryDelivered,
	layout.DeliveryUnconfirmed, layout.DeliveryForbidden, layout.DeliveryWithdrawn}

// inAllStates is the value by which all deliveries are listed.
const inAllStates = "all"

type deliveriesView struct {
	Rows    []delivery.Row
	All     int // that fit
	State   string
	To      string
	States  []string
	Targets []string
}

// deliveries shows what goes to other systems, and why something does not.
func (p capabilities) deliveries(w http.ResponseWriter, r *http.Request) (string, any, error) {
	const most = 200
	q := r.URL.Query()
	v := deliveriesView{State: q.Get("state"), To: q.Get("to"), States: append([]string{inAllStates}, deliveryStates...),
		Targets: slices.Sorted(maps.Keys(p.d.Settings.Current().Settings.Targets))}
	which := delivery.Which{To: layout.Name(v.To), State: v.State, Open: v.State == "", Within: desk.Within(r.Context())}
	switch {
	case v.State != "" && !slices.Contains(v.States, v.State):
		return "", nil, fault.New(fault.Invalid, fmt.Sprintf("state %q: expected one of %v", v.State, v.States))
	case v.State == inAllStates:
		which.State = ""
	}
	desk.Patient(w)
	var err error
	v.Rows, v.All, err = delivery.List(r.Context(), p.d.Delivery, which, most)
	return "deliveries", v, err
}
