package screen_test

import (
	"bytes"
	"errors"
	"testing"

	"bagpipe/cmd/bagpipe/internal/screen"
)

// What a producer wrote cannot steer the terminal of whoever looks at it.
func TestOutputSteersNoTerminal(t *testing.T) {
	for text, want := range map[string]string{
		"plain\tänd 😀\n":       "plain\tänd 😀\n",
		"\x1b]0;PWN\a\x1b[31m": `\u001b]0;PWN\u0007\u001b[31m`,
		"c1 \u009b31m":         `c1 \u009b31m`,
		"raw \x9b31m \xff":     `raw \x9b31m \xff`,
		"a\u202egpj.exe\r":     `a\u202egpj.exe\u000d`,
		"cut \xf0\x9f\x98":     `cut \xf0\x9f\x98`,
	} {
		for _, size := range []int{1, 2, len(text)} {
			var got bytes.Buffer
			o := &screen.Output{W: &got}
			for left := []byte(text); len(left) > 0; left = left[min(size, len(left)):] {
				if n, err := o.Write(left[:min(size, len(left))]); err != nil || n != min(size, len(left)) {
					t.Fatalf("%q: %d, %v", text, n, err)
				}
			}
			if err := o.Failure(); err != nil || got.String() != want {
				t.Errorf("%q by %d: %q, %v; want %q", text, size, got.String(), err, want)
			}
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("full") }

func TestOutputRemembersItsFirstError(t *testing.T) {
	o := &screen.Output{W: full{}}
	if _, err := o.Write([]byte("a")); err == nil || o.Failure() == nil {
		t.Errorf("%v, %v", err, o.Failure())
	}
}
