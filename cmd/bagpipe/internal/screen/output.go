package screen

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Output is standard output that remembers its first error: most of what is
// printed is printed without asking, and a report that was cut off by a full disk
// must not end with exit code 0. What would steer a terminal is written as Plain has it.
type Output struct {
	W       io.Writer
	Colours bool

	mu   sync.Mutex // guards what follows
	rest []byte     // the beginning of a character that the last Write cut
	err  error
}

func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	text := p
	if len(o.rest) > 0 {
		text = append(o.rest, p...)
	}
	n := len(text) - cutAtEnd(text)
	o.rest = append([]byte(nil), text[n:]...)
	return len(p), o.write(text[:n])
}

func (o *Output) write(text []byte) error {
	if !harmless(text) {
		text = []byte(Plain(string(text)))
	}
	if o.Colours {
		text = []byte(paint(string(text)))
	}
	_, err := o.W.Write(text)
	if err != nil && o.err == nil {
		o.err = err
	}
	return err
}

// Failure writes what is left and gives the first error.
func (o *Output) Failure() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.rest) > 0 {
		_ = o.write(o.rest) // remembered
		o.rest = nil
	}
	return o.err
}

// cutAtEnd is how many bytes at the end begin a character and do not end it.
func cutAtEnd(p []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(p); n++ {
		if tail := p[len(p)-n:]; utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return 0
			}
			return n
		}
	}
	return 0
}

// harmless tells quickly that a text is printable ASCII.
func harmless(p []byte) bool {
	for _, c := range p {
		if c >= 0x7f || c < ' ' && c != '\n' && c != '\t' {
			return false
		}
	}
	return true
}

// steers tells the characters that change how a terminal shows others: controls, and
// those that turn the direction of writing. A new line and a tab do not.
func steers(r rune) bool {
	return r != '\n' && r != '\t' && unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
}

// Plain writes what would steer a terminal as \u001b, which is also right within JSON;
// bytes that are no UTF-8 as \x9b.
func Plain(text string) string {
	if strings.IndexFunc(text, steers) < 0 && utf8.ValidString(text) {
		return text
	}
	var w strings.Builder
	for i, n := 0, 0; i < len(text); i += n {
		var r rune
		r, n = utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&w, `\x%02x`, text[i])
		case steers(r):
			fmt.Fprintf(&w, `\u%04x`, r)
		default:
			w.WriteRune(r)
		}
	}
	return w.String()
}
