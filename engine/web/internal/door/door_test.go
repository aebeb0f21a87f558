package door

import (
	"fmt"
	"testing"
	"time"
)

// A name has five tries a minute from one address, and an address sixty, whatever the names.
func TestTries(t *testing.T) {
	now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	d := &Door{Now: func() time.Time { return now }}
	try := func(name, address string) bool {
		may := d.mayTry(name, address)
		if may {
			d.tried()
		}
		return may
	}
	for i := range 7 {
		if got := try("zoe", "192.0.2.1"); got != (i < 5) {
			t.Errorf("try %d: %v", i+1, got)
		}
	}
	if !try("zoe", "192.0.2.2") || !try("ada", "192.0.2.1") {
		t.Error("another address, or name, is kept out")
	}
	now = now.Add(59 * time.Second)
	if try("zoe", "192.0.2.1") {
		t.Error("within the minute")
	}
	now = now.Add(2 * time.Second)
	if !try("zoe", "192.0.2.1") {
		t.Error("after the minute")
	}
	looked := 0
	for i := range 10_000 {
		if try(fmt.Sprint("name-", i), "192.0.2.3") {
			looked++
		}
	}
	if looked != mostOfAddress {
		t.Errorf("%d of ten thousand names were looked at", looked)
	}
	for range mostWaiting {
		d.waiting++
	}
	if try("eve", "192.0.2.9") {
		t.Error("one more waits for a comparison")
	}
}
