package state

import "testing"

// BenchmarkTransition reads a record, makes one attempt at a step, and writes it
// twice: what the engine does for one step.
func BenchmarkTransition(b *testing.B) {
	d := trial(b)
	data := started(b, d).Encode()
	b.ReportAllocs()
	for b.Loop() {
		x, err := Decode(data)
		if err != nil {
			b.Fatal(err)
		}
		x.Compute(wf, d)
		k := x.NextKey("unpack", engineA)
		if _, err := Apply(x, d, Claim{Workflow: wf, Step: "unpack", Attempt: k, At: t0, Runner: "h:1"}); err != nil {
			b.Fatal(err)
		}
		if x, err = Decode(x.Encode()); err != nil {
			b.Fatal(err)
		}
		x.Compute(wf, d)
		if _, err := Apply(x, d, End{Workflow: wf, Step: "unpack", Attempt: k, State: Completed, Started: t0, At: t0}); err != nil {
			b.Fatal(err)
		}
		_ = x.Encode()
	}
}
