package bags

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"bagpipe/bags/archive"
	"bagpipe/bags/finding"
)

// Tag files can be as long as somebody likes; what is made of them has an end.

func TestALabelFoldedWithoutEnd(t *testing.T) {
	const lines = 200_000
	b := goodBag()
	b["bag-info.txt"] = "Note: x\n" + strings.Repeat("  the next line of it\n", lines)
	b.sealTags()
	dir := b.write(t)
	done := make(chan Report, 1)
	go func() {
		r, err := Validate(t.Context(), dir, ValidateOptions{})
		if err != nil {
			t.Error(err)
		}
		done <- r
	}()
	select {
	case r := <-done:
		if want := len("x") + lines*len(" the next line of it"); !r.Valid || len(r.Info) != 1 || len(r.Info[0].Value) != want {
			t.Errorf("%d errors, %d labels", r.Errors, len(r.Info))
		}
	case <-time.After(30 * time.Second):
		t.Fatal("no end")
	}
}

func TestABagInfoWithoutEnd(t *testing.T) {
	b := goodBag()
	b["bag-info.txt"] = strings.Repeat("Note: x\n", (16<<20)/8+10)
	b.sealTags()
	r := expectBag(t, b.write(t), false, false, finding.InfoSyntax)
	if r.Errors != 1 || len(r.Info) != (16<<20)/8 {
		t.Errorf("%d errors, %d labels", r.Errors, len(r.Info))
	}
}

func TestFindingsAreCountedWhereTheyAreTooMany(t *testing.T) {
	const empty = mostFindings + 50_000
	b := goodBag()
	b["manifest-sha512.txt"] += strings.Repeat("\n", empty)
	b.sealTags()
	r := expectBag(t, b.write(t), false, false, finding.ManifestSyntax)
	if r.Errors != empty || len(r.Findings) != mostFindings+1 || !hasFinding(r, finding.More, finding.Error) {
		t.Errorf("%d errors, %d findings", r.Errors, len(r.Findings))
	}
	if last := r.Findings[len(r.Findings)-1]; last.Text != "and 50000 more of which nothing is said" {
		t.Errorf("%+v", last)
	}
}

func TestFilesThatAreNotThereAreBounded(t *testing.T) {
	b := goodBag()
	var manifest, fetch strings.Builder
	for i := range 100 {
		fmt.Fprintf(&manifest, "%s  data/gone-%d\n", hex512("x"), i)
		fmt.Fprintf(&fetch, "https://example.org/x - data/gone-%d\n", i)
	}
	b["manifest-sha512.txt"] += manifest.String()
	b.sealTags()
	for _, c := range []struct {
		fetch string
		want  int
	}{{"", 11}, {fetch.String(), 12}} {
		if c.fetch != "" {
			b["fetch.txt"] = c.fetch
		}
		want := c.want
		r, err := Validate(t.Context(), b.write(t), ValidateOptions{Limits: archive.Limits{Files: 10}, Level: Complete})
		if err != nil || r.Complete || r.Errors != want {
			t.Errorf("%d errors, want %d: %+v, %v", r.Errors, want, r.Findings, err)
		}
	}
}
