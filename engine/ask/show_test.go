package ask

import (
	"testing"

	"bagpipe/layout"
)

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
