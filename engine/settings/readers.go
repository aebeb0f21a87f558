package settings

import (
	"fmt"
	"maps"
	"slices"

	"bagpipe/layout"
)

// Reader is a program that hands in items, and what becomes of them where it does not say.
type Reader struct {
	Command    []string        `yaml:"command"`
	Every      layout.Duration `yaml:"every"` // by itself; 0: when it is asked
	Timeout    layout.Duration `yaml:"timeout"`
	Collection string          `yaml:"collection"`
	Workflow   string          `yaml:"workflow"`
	Lane       string          `yaml:"lane"`
}

// checkReaders checks the values below readers:.
func checkReaders(s *Settings, y *layout.YAML) error {
	for _, name := range slices.Sorted(maps.Keys(s.Readers)) {
		r, at := s.Readers[name], fmt.Sprintf("$.readers.'%s'", name)
		if _, err := layout.ParseName(name); err != nil {
			return y.Errorf("$.readers", "%q: %v", name, err)
		}
		if len(r.Command) == 0 || r.Command[0] == "" {
			return y.Errorf(at+".command", "expected a program and its arguments: [PROGRAM, ARGUMENT, …]")
		}
		for key, value := range map[string]string{"collection": r.Collection, "workflow": r.Workflow} {
			if _, err := layout.ParseName(value); value != "" && err != nil {
				return y.Errorf(at+"."+key, "%v", err)
			}
		}
		if err := s.CheckLane(r.Lane); r.Lane != "" && err != nil {
			return y.Errorf(at+".lane", "%v", err)
		}
	}
	return nil
}
