package odb

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestLineDeltaKeepsToTheLinesThatChanged(t *testing.T) {
	old := strings.Repeat("  \"the same line\": 1,\n", 3) + "  \"status\": \"in-progress\",\n" + strings.Repeat("  \"another line\": 2,\n", 50) + "  \"end\": 1\n"
	fresh := strings.Replace(strings.Replace(old, "in-progress", "completed", 1), "\"end\": 1", "\"end\": 2", 1)
	d := appendLineDelta(nil, []byte(old), []byte(fresh))
	got, err := applyDelta([]byte(old), d)
	if err != nil || string(got) != fresh {
		t.Fatalf("%q, %v", got, err)
	}
	if len(d) > 120 {
		t.Errorf("two lines changed, and the delta has %d bytes", len(d))
	}
}

func FuzzLineDelta(f *testing.F) {
	f.Add([]byte("a\nb\nc\n"), []byte("c\nb\na\n"))
	f.Add([]byte(""), []byte("x"))
	f.Add([]byte("0123456789\n0123456789\n"), []byte("0123456789\n"))
	r := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		lines := func() []byte {
			var b []byte
			for range r.IntN(40) {
				b = append(b, strings.Repeat(string(rune('a'+r.IntN(4))), 5+r.IntN(9))+"\n"...)
			}
			return b
		}
		f.Add(lines(), lines())
	}
	f.Fuzz(func(t *testing.T, old, fresh []byte) {
		got, err := applyDelta(old, appendLineDelta(nil, old, fresh))
		if err != nil || !bytes.Equal(got, fresh) {
			t.Fatalf("%q becomes %q, %v", fresh, got, err)
		}
	})
}
