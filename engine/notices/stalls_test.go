package notices_test

import (
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bagpipe/engine"
	"bagpipe/engine/intake"
)

// A step that nobody does, and that usually waits for a moment alone, is told of once; and once it is done,
// that it is mended.
func TestAStallIsToldOnceAndThatItIsMended(t *testing.T) {
	h := &hook{}
	server := httptest.NewServer(h)
	defer server.Close()
	ok := filepath.Join(t.TempDir(), "ok")
	t.Setenv("OK", ok)
	b := newBench(t, "{url: '"+server.URL+"'}")
	b.put(filepath.Dir(ok), "ok", "")
	b.fail(12) // none does: from these it is known how long a step waits
	if d := b.told(h); d != nil {
		t.Fatalf("nothing stalls, and it tells %+v", d)
	}
	late := filepath.Join(t.TempDir(), "late.txt")
	b.put(filepath.Dir(late), "late.txt", "x")
	b.must(b.e.Intake.AddAll(t.Context(), []string{late}, intake.AddOptions{}, func(_ intake.Admitted, err error) { b.must(err) }))
	b.must(b.e.Notices.Tell(t.Context(), false))
	if len(h.got) != 0 {
		t.Fatalf("at once it tells %+v", h.got[0])
	}
	d := b.told(h)
	b.wants(d, "stalls", "w/scan")
	if d != nil && (len(d.News) != 1 || d.News[0].Label != "late.txt" || d.Text != "1 stalled" || !d.News[0].Since.Equal(d.At.Add(-time.Hour))) {
		t.Errorf("%+v", d)
	}
	for range 3 {
		if d := b.told(h); d != nil {
			t.Errorf("told again: %+v", d)
		}
	}
	_, err := b.e.Run(t.Context(), engine.RunOptions{Parallel: 1}) // which tells at its end
	b.must(err)
	if n := len(h.got); n != 2 {
		t.Fatalf("%d digests, want that it is mended as the second", n)
	}
	b.wants(&h.got[1], "mended", "w/scan")
	if lines := strings.Join(h.got[1].Lines(), "\n"); !strings.Contains(lines, "Mended:") || strings.Contains(lines, "failed") {
		t.Error(lines)
	}
	if d := b.told(h); d != nil {
		t.Errorf("after all it tells %+v", d)
	}
}
