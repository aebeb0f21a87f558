package runner

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func second(n int) time.Time { return time.Unix(int64(n), 0) }

// Chapter 2.6 of the seed: "The threshold is reached if the number of errors
// occurring within the window size is equal to or greater than the error count. A
// value of 0 disables the error threshold so no action can be taken. A window of 0
// means no window, i.e. all errors are counted."
func TestThreshold(t *testing.T) {
	for _, c := range []struct {
		name          string
		ends          string // one a second: F failed, . did not
		count, window int
		since         int
		reached       bool
	}{
		{"fewer than the count", "F.F", 3, 10, 0, false},
		{"equal to the count", "F.FF", 3, 10, 0, true},
		{"greater than the count", "FFFF", 3, 10, 0, true},
		{"within the window size", "F......FF", 3, 9, 0, true},
		{"the first one is outside the window", "F......FF", 3, 8, 0, false},
		{"a count of 0 disables it", "FFFFFFFF", 0, 0, 0, false},
		{"a window of 0 counts all", "F....................F", 2, 0, 0, true},
		{"what was before it was enabled does not count", "FFF.F", 2, 0, 3, false},
		{"what came after does", "FFF.FF", 2, 0, 3, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var y Tally
			y.Watch(c.window)
			for i, e := range c.ends {
				y.Add(End{At: second(i + 1), Failed: e == 'F'})
			}
			failures, _ := y.Count(c.window, second(c.since))
			if Reached(c.count, failures) != c.reached {
				t.Errorf("%d failures of %q", failures, c.ends)
			}
		})
	}
}

// However the ends come, twice and out of order, what is counted is what a count
// over all of them says.
func TestTallyForgetsNothingThatCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		window := rapid.SampledFrom([]int{0, 1, 5, 40, 200}).Draw(t, "window")
		n := rapid.IntRange(0, 400).Draw(t, "ends")
		var y Tally
		y.Watch(window)
		all := make([]End, n)
		for i := range all {
			all[i] = End{At: second(i / 3), Key: fmt.Sprintf("%04d", i), Failed: rapid.IntRange(0, 3).Draw(t, "failed") == 0}
		}
		late := rapid.IntRange(0, 3).Draw(t, "late")
		for i := range all {
			if j := i + late; j < n && i%7 == 0 {
				y.Add(all[j])
			}
			y.Add(all[i])
			y.Add(all[max(0, i-rapid.IntRange(0, 300).Draw(t, "again"))])
		}
		since := second(rapid.IntRange(-1, n/3).Draw(t, "since"))
		want, seen := 0, 0
		for i := n - 1; i >= 0 && all[i].At.After(since) && (window == 0 || seen < window); i-- {
			if seen++; all[i].Failed {
				want++
			}
		}
		if got, _ := y.Count(window, since); got != want {
			t.Errorf("%d failures, want %d", got, want)
		}
		if most := leastCompact + 2*window; window > 0 && len(y.ends) > 2*most {
			t.Errorf("%d ends are kept for a window of %d", len(y.ends), window)
		}
	})
}

func TestALargerWindowAsksForAllAgain(t *testing.T) {
	var y Tally
	y.Watch(3)
	for i := range 200 {
		y.Add(End{At: second(i), Failed: true})
	}
	if !y.Watch(100) {
		t.Fatal("what was dropped is not asked for again")
	}
	for i := range 200 {
		y.Add(End{At: second(i), Failed: true})
	}
	if n, of := y.Count(100, time.Time{}); n != 100 || of != 100 {
		t.Errorf("%d of %d", n, of)
	}
	if y.Watch(50) {
		t.Error("a smaller window asks for all again")
	}
}
