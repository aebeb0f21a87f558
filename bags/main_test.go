package bags

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain lets this test binary be the reader of 7z and rar archives, too.
func TestMain(m *testing.M) {
	if code, ok := Reader(); ok {
		os.Exit(code)
	}
	goleak.VerifyTestMain(m)
}
