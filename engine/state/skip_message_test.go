package state_test

import (
	"testing"

	"bagpipe/engine/state"
)

// A required step that is skipped says that it is not applicable, once; an optional one says why alone.
func TestSkipMessage(t *testing.T) {
	for _, tc := range []struct {
		optional  bool
		why, want string
	}{
		{false, "", "not applicable"},
		{false, "it has no text", "not applicable: it has no text"},
		{false, "not applicable: a folder is no archive", "not applicable: a folder is no archive"},
		{true, "it has no text", "it has no text"},
	} {
		if got := (&state.Step{Optional: tc.optional}).SkipMessage(tc.why); got != tc.want {
			t.Errorf("%q of a step with optional: %v is %q, not %q", tc.why, tc.optional, got, tc.want)
		}
	}
}
