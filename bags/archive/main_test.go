package archive

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if code, ok := Reader(); ok {
		os.Exit(code)
	}
	goleak.VerifyTestMain(m)
}
