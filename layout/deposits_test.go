package layout_test

import (
	"strings"
	"testing"
	"time"

	"bagpipe/layout"

	"pgregory.net/rapid"
)

func TestDepositsTargetWithoutVersionsIsNone(t *testing.T) {
	d, err := layout.DecodeDeposits([]byte(`{"schema":1,"item":"3fa9c0d2e1b7a45","copies":{},"targets":{"vault":{},"none":null}}`))
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Targets) != 0 {
		t.Errorf("targets: %v", d.Targets)
	}
	data, err := d.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(data), "vault") {
		t.Errorf("written again: %s", data)
	}
}

// Whichever comes first, and however often, two records of copies join to one.
func TestDepositsJoin(t *testing.T) {
	at := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	copyAt := rapid.Custom(func(r *rapid.T) layout.DepositCopy {
		hour := func(name string) time.Time {
			return at.Add(time.Duration(rapid.IntRange(0, 3).Draw(r, name)) * time.Hour)
		}
		c := layout.DepositCopy{Place: "a", Layout: "bag", Digest: "sha512:1", Written: at, Verified: hour("verified"), Retention: hour("retention"),
			Outcome: rapid.SampledFrom([]string{layout.FixityPassed, layout.FixityFailed}).Draw(r, "outcome")}
		if rapid.Bool().Draw(r, "failed") {
			c.LastFailure = &layout.DepositFailure{At: hour("failure"), Message: rapid.SampledFrom([]string{"x", "y"}).Draw(r, "message")}
		}
		return c
	})
	record := rapid.Custom(func(r *rapid.T) layout.Deposits {
		d := layout.Deposits{Item: "3fa9c0d2e1b7a45", Copies: map[string]layout.FixityCheck{}}
		for _, name := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{"source", "content"}), rapid.ID).Draw(r, "copies") {
			d.Copies[name] = layout.FixityCheck{At: copyAt.Draw(r, "check").Verified, Outcome: rapid.SampledFrom([]string{layout.FixityPassed, layout.FixityAbsent}).Draw(r, "found")}
		}
		d.Targets = rapid.MapOf(rapid.SampledFrom([]layout.Name{"vault", "tape"}), rapid.MapOfN(rapid.IntRange(1, 2), copyAt, 1, 2)).Draw(r, "targets")
		return d
	})
	text := func(d layout.Deposits) string {
		data, err := d.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	rapid.Check(t, func(r *rapid.T) {
		a, b, c := record.Draw(r, "a"), record.Draw(r, "b"), record.Draw(r, "c")
		if x, y := text(a.Join(b)), text(b.Join(a)); x != y {
			r.Fatalf("not commutative:\n%s\n%s", x, y)
		}
		if x, y := text(a.Join(b).Join(c)), text(a.Join(b.Join(c))); x != y {
			r.Fatalf("not associative:\n%s\n%s", x, y)
		}
		if x, y := text(a.Join(b)), text(a.Join(b).Join(a)); x != y {
			r.Fatalf("not idempotent:\n%s\n%s", x, y)
		}
	})
}

// Of two looks at a copy the later counts, whichever side has it; the longest retention and the last failure stay.
func TestTheLaterLookAtACopyCounts(t *testing.T) {
	at := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	of := func(hours int, outcome string, held int, failed string) layout.Deposits {
		c := layout.DepositCopy{Place: "a", Layout: "bag", Digest: "sha512:1", Written: at, Verified: at.Add(time.Duration(hours) * time.Hour), Outcome: outcome,
			Retention: at.Add(time.Duration(held) * time.Hour), LastFailure: &layout.DepositFailure{At: at.Add(time.Duration(hours) * time.Hour), Message: failed}}
		return layout.Deposits{Item: "3fa9c0d2e1b7a45", Targets: map[layout.Name]map[int]layout.DepositCopy{"vault": {1: c}},
			Copies: map[string]layout.FixityCheck{"content": {At: c.Verified, Outcome: outcome}}}
	}
	early, late := of(1, layout.FixityPassed, 9, "x"), of(2, layout.FixityFailed, 3, "y")
	for _, joined := range []layout.Deposits{early.Join(late), late.Join(early)} {
		c := joined.Targets["vault"][1]
		if c.Outcome != layout.FixityFailed || !c.Verified.Equal(at.Add(2*time.Hour)) || !c.Retention.Equal(at.Add(9*time.Hour)) || c.LastFailure.Message != "y" {
			t.Errorf("the copy is %+v", c)
		}
		if is := joined.Copies["content"]; is.Outcome != layout.FixityFailed {
			t.Errorf("the content is %+v", is)
		}
	}
}
