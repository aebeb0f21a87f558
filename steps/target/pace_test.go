package target_test

import (
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"bagpipe/steps/target"
	"bagpipe/steps/target/targettest"
	"bagpipe/testdata/sample"
)

// What goes to a target, and is read back, takes as long as its rate: says, whatever goes at once.
func TestRateOfATarget(t *testing.T) {
	dir := filepath.Join(sample.TempDir(t), "vault")
	bag := targettest.NewBag(t, "one", targettest.Now(), map[string]string{"a": strings.Repeat("a", 60_000), "b": strings.Repeat("b", 60_000), "c": strings.Repeat("c", 60_000)})
	synctest.Test(t, func(t *testing.T) {
		const rate, payload = 1000, 180_000
		to := open(t, target.Config{Kind: target.KindFolder, Path: dir, Rate: rate})
		least := 2 * payload * time.Second / rate * 9 / 10 // written, and read back
		begun := time.Now()
		made, err := to.Put(t.Context(), bag)
		must(t, err)
		if took := time.Since(begun); took < least || took > 2*least {
			t.Errorf("a put of %d bytes at %d a second took %s, want %s and no more than the bag's other files", payload, rate, took, least)
		}
		begun = time.Now()
		_, _, err = to.Check(t.Context(), made, target.Read)
		must(t, err)
		if took := time.Since(begun); took < least/2 || took > least {
			t.Errorf("a look took %s, want %s", took, least/2)
		}
	})
}
