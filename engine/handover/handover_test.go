package handover_test

import (
	"testing"

	"bagpipe/engine/handover"
)

// An error repeats what the program said, if it said anything.
func TestRunSaysWhatTheProgramSaid(t *testing.T) {
	for script, want := range map[string]string{
		"cat; exit 3":               "sh: exit status 3: the digest",
		"echo ' '; exit 1":          "sh: exit status 1",
		`test "$NEWS" = 2; exit $?`: "",
	} {
		err := handover.Run(t.Context(), t.TempDir(), []string{"sh", "-c", script}, []string{"NEWS=2"}, []byte("the digest"))
		if got := message(err); got != want {
			t.Errorf("%s: got %q, want %q", script, got, want)
		}
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
