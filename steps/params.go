package steps

import (
	"fmt"
	"strconv"
	"time"
)

// Parameters come from the workflow's YAML; a wrong one is the operator's to
// mend.

// ParameterError says what is wrong with the value of a parameter.
type ParameterError struct{ Name, Text string }

func (e *ParameterError) Error() string { return "parameter " + e.Name + ": " + e.Text }

func wrongParam(name, format string, args ...any) error {
	return SystemFailure("%w", &ParameterError{name, fmt.Sprintf(format, args...)})
}

func stringParam(with map[string]any, name string) (string, error) {
	v, ok := with[name]
	if !ok {
		return "", nil
	}
	s, ok := v.(string)
	if !ok {
		return "", wrongParam(name, "want text, got %v", v)
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
		return nil, wrongParam(name, "want a list, got %v", v)
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
		return 0, wrongParam(name, "want a time as 10ms, 2s or 5m, got %q", s)
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
		return 0, wrongParam(name, "want a number from 0 up, got %v", v)
	}
	return n, nil
}
