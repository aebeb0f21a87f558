package ask

import (
	"testing"

	"bagpipe/layout"
)

// While a version waits, what the target holds of the item is told, too.
func TestTheVersionAtTheTargetIsTold(t *testing.T) {
	d := DeliveryDetail{Target: "portal", Delivery: layout.Delivery{State: layout.DeliveryReady, Version: 2, Sent: &layout.DeliverySent{Version: 1}}}
	if got, want := d.String(), "to portal: ready since 0001-01-01T00:00:00Z, version 2; version 1 stands there since 0001-01-01T00:00:00Z"; got != want {
		t.Errorf("%s; want %s", got, want)
	}
	d.Sent.Maybe = true // sent is version 2, and may be there
	if got, want := d.String(), "to portal: ready since 0001-01-01T00:00:00Z, version 2"; got != want {
		t.Errorf("%s; want %s", got, want)
	}
}

// An approval is of one version: of the next one, which waits, it is not told as if it were.
func TestApprovalIsToldOfItsVersion(t *testing.T) {
	of := &layout.DeliveryDecision{What: layout.DeliveryApproved, By: "A. Archivist", Version: 1, Text: "seen"}
	for version, want := range map[int]string{
		1: "to portal: waits since 0001-01-01T00:00:00Z, version 1: for a person's approval: approved by A. Archivist: seen",
		2: "to portal: waits since 0001-01-01T00:00:00Z, version 2: for a person's approval: version 1 was approved by A. Archivist: seen",
	} {
		d := DeliveryDetail{Target: "portal", Delivery: layout.Delivery{State: layout.DeliveryWaits, Version: version, Decision: of}}
		if got := d.String(); got != want {
			t.Errorf("version %d: %s; want %s", version, got, want)
		}
	}
}
