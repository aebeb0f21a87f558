package engine_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// roomFloors are the floors of the rooms that trips lead through.
var roomFloors = map[string]int{"engine": 10, "engine/intake": 7, "engine/attempt": 7, "engine/intake/recognition": 6, "engine/index": 6,
	"engine/guard": 5, "engine/control": 5, "engine/settings": 5, "engine/ledger": 4, "engine/gitstore": 3}

// The trips that doc.go lists lead through files and functions that are there, down and up once.
func TestTripsGoDownAndComeBackOnce(t *testing.T) {
	data, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, trip := range strings.Split(string(data), "\n// # The trip of ")[1:] {
		name, _, _ := strings.Cut(trip, "\n")
		at, up, n := 11, false, 0
		for line := range strings.Lines(trip) {
			stop, is := strings.CutPrefix(line, "//\t")
			if !is {
				continue
			}
			file := strings.Fields(stop)[0]
			source, err := os.ReadFile(filepath.Join("..", file))
			if err != nil {
				t.Errorf("the trip of %s: %v", name, err)
			}
			names, _, _ := strings.Cut(strings.TrimSpace(stop[len(file):]), ":")
			for _, called := range strings.Split(names, ", ") {
				if !regexp.MustCompile(`(?m)^func (\([^)]*\) )?` + called + `\b`).Match(source) {
					t.Errorf("the trip of %s: %s has no function %s", name, file, called)
				}
			}
			floor, known := roomFloors[filepath.Dir(file)]
			if !known {
				t.Errorf("the trip of %s: %s is in no room", name, file)
			}
			if floor > at {
				up = true
			}
			if floor < at && up {
				t.Errorf("the trip of %s goes down again at %s", name, file)
			}
			at, n = floor, n+1
		}
		if n < 5 || !up {
			t.Errorf("the trip of %s: %d stops, and comes back: %v", name, n, up)
		}
	}
}
