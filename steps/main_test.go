package steps

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain lets this test binary be the process that decodes files.
func TestMain(m *testing.M) {
	if code, ok := Decoder(); ok {
		os.Exit(code)
	}
	goleak.VerifyTestMain(m)
}
