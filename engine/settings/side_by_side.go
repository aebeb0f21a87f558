package settings

import (
	"fmt"
	"slices"
	"strings"

	"bagpipe/engine/state"
)

// SideBySide tells of steps that may be at work on an item at once and may replace its content:
// of two such the later one fails (engine/attempt). Each warning is of a group of steps that
// are joined by that.
func SideBySide(d *state.Definition) (warnings []string) {
	grouped := make([]bool, len(d.Steps))
	for i := range d.Steps {
		if grouped[i] || !mayReplace(&d.Steps[i]) {
			continue
		}
		grouped[i] = true
		group, all := []int{i}, true
		for at := 0; at < len(group); at++ {
			for j := range d.Steps {
				if !grouped[j] && mayReplace(&d.Steps[j]) && apart(d, group[at], j) {
					grouped[j] = true
					group = append(group, j)
				}
			}
		}
		if len(group) == 1 {
			continue
		}
		slices.Sort(group)
		names := make([]string, len(group))
		for at, a := range group {
			names[at] = string(d.Steps[a].Name)
			all = all && !slices.ContainsFunc(group[at+1:], func(b int) bool { return !apart(d, a, b) })
		}
		some := ""
		if !all {
			some = "some of "
		}
		last := len(names) - 1
		warnings = append(warnings, fmt.Sprintf("%s%s and %s may be at work at once: of two that replace content/, or the same metadata, the later one fails; let one require the other",
			some, strings.Join(names[:last], ", "), names[last]))
	}
	return warnings
}

// apart reports whether neither of two steps waits for the other.
func apart(d *state.Definition, a, b int) bool {
	return a != b && !slices.Contains(d.After(a), b) && !slices.Contains(d.After(b), a)
}

// mayReplace reports whether a step publishes content, or may: what a program does is its own.
func mayReplace(s *state.Step) bool { return s.Robot == "unpack" || s.Command != nil || s.External }
