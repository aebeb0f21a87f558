package fault_test

import (
	"errors"
	"fmt"
	"testing"

	"bagpipe/engine/fault"
)

func TestIsFollowsTheChain(t *testing.T) {
	none := fault.New(fault.NotFound, `no batch "june"`, fault.Remedy{Verb: fault.ListBatches})
	wrapped := fmt.Errorf("close: %w", none)
	if !fault.Is(wrapped, fault.NotFound) || fault.Is(wrapped, fault.Busy) || fault.Is(errors.New("disk"), fault.NotFound) {
		t.Errorf("kinds are mistaken")
	}
	outer := &fault.Error{Kind: fault.Damaged, Text: "read item", Err: wrapped}
	if !fault.Is(outer, fault.Damaged) || fault.Is(outer, fault.NotFound) {
		t.Errorf("the outermost fault does not decide")
	}
	if got, want := outer.Error(), `read item: close: no batch "june"`; got != want {
		t.Errorf("text is %q, not %q", got, want)
	}
}

func TestAllFindsJoinedFaults(t *testing.T) {
	one := fault.New(fault.NotFound, "one", fault.Remedy{Verb: fault.Run})
	two := fault.New(fault.Busy, "two", fault.Remedy{Verb: fault.Status})
	silent := fault.New(fault.Refused, "silent")
	all := fault.All(errors.Join(fmt.Errorf("a: %w", one), silent, errors.New("plain"), &fault.Error{Kind: fault.Damaged, Text: "b", Err: two}))
	if len(all) != 2 || all[0] != fault.Fault(one) || all[1] != fault.Fault(two) {
		t.Errorf("found %v", all)
	}
	if got := fault.All(nil); got != nil {
		t.Errorf("no error has faults %v", got)
	}
}
