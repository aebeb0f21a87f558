package target_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"bagpipe/steps/target"
)

// What goes from a folder while it is listed, as what other puts stage does, is left out.
func TestAListingOfWhatGoesMeanwhile(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "stays"), []byte("s"), 0o644); err != nil {
		t.Fatal(err)
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			name := filepath.Join(dir, fmt.Sprint("goes-", n%50))
			if os.WriteFile(name, nil, 0o644) == nil {
				_ = os.Remove(name)
			}
		}
	}()
	defer func() { close(stop); <-done }()
	for range 2000 {
		names, err := target.ListFolder(t.Context(), dir)
		if err != nil || len(names) == 0 || names[len(names)-1] != "stays" {
			t.Fatal(names, err)
		}
	}
}
