package steps

import (
	"fmt"
	"strconv"
	"time"
)

// Parameters come from the workflow's YAML; a wrong one is the operator's to
// mend.

func stringParam(with map[string]any, name string) (string, error) {
	v, ok := with[name]
	if !ok {
		return "", nil
	}
	s, ok := v.(string)
	if !ok {
		return "", SystemFailure("parameter %s: want text, got %v", name, v)
	}
	return s, nil
}

func stringsParam(with map[string]any, name string) ([]string, error) {
	v, ok := with[name]
	if !ok {
		return nil, nil
	}
	list, ok := v.([]any)
	if !ok {
		return nil, SystemFailure("parameter %s: want a list, got %v", name, v)
	}
	var all []string
	for _, e := range list {
		all = append(all, fmt.Sprint(e))
	}
	return all, nil
}

func durationParam(with map[string]any, name string) (time.Duration, error) {
	s, err := stringParam(with, name)
	if err != nil || s == "" {
		return 0, err
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, SystemFailure("parameter %s: want a time as 10ms, 2s or 5m, got %q", name, s)
	}
	return d, nil
}

// countParam is a number from 0 up, however YAML read it.
func countParam(with map[string]any, name string) (int, error) {
	v, ok := with[name]
	if !ok {
		return 0, nil
	}
	n, err := strconv.Atoi(fmt.Sprint(v))
	if err != nil || n < 0 {
		return 0, SystemFailure("parameter %s: want a number from 0 up, got %v", name, v)
	}
	return n, nil
}
