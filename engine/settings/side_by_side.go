package settings

import (
	"fmt"
	"slices"

	"bagpipe/engine/state"
)

// SideBySide tells of steps that may be at work on an item at once and may both replace its
// content: of such the later one fails (engine/attempt).
func SideBySide(d *state.Definition) (warnings []string) {
	for i := range d.Steps {
		for j := i + 1; j < len(d.Steps); j++ {
			a, b := &d.Steps[i], &d.Steps[j]
			if !mayReplace(a) || !mayReplace(b) || slices.Contains(d.After(i), j) || slices.Contains(d.After(j), i) {
				continue
			}
			warnings = append(warnings, fmt.Sprintf("%s and %s may be at work at once: of two that replace content/, or the same metadata, the later one fails; let one require the other", a.Name, b.Name))
		}
	}
	return warnings
}

// mayReplace reports whether a step publishes content, or may: what a program does is its own.
func mayReplace(s *state.Step) bool { return s.Robot == "unpack" || s.Command != nil || s.External }
