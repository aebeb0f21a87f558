package confined

import "testing"

// A runtime that gets no memory for a thread, with cgo or without, says it in words of its own.
func TestExhausted(t *testing.T) {
	for text, want := range map[string]bool{
		"fatal error: runtime: cannot allocate memory":                                  true,
		"runtime: failed to create new OS thread (have 5 already; errno=11)":            true,
		"runtime/cgo: pthread_create failed: Resource temporarily unavailable\nSIGABRT": true,
		"panic: index out of range":                                                     false,
	} {
		if Exhausted(text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}
