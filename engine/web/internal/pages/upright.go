package pages

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// upright writes out, as \u202e, what turns the direction of the text behind it, as the command line does: a name
// that holds such a character would be read as another. What stands within tags stays, as links and forms need it, and so
// does what is edited.
func upright(page []byte) []byte {
	const begins = 0xe2 // each of them in UTF-8
	var out []byte
	written, looked, tag, text := 0, 0, 0, 0 // tag and text: behind the last < and the last >
	for looked < len(page) {
		n := bytes.IndexByte(page[looked:], begins)
		if n < 0 {
			break
		}
		at := looked + n
		if i := bytes.LastIndexByte(page[looked:at], '<'); i >= 0 {
			tag = looked + i + 1
		}
		if i := bytes.LastIndexByte(page[looked:at], '>'); i >= 0 {
			text = looked + i + 1
		}
		r, size := utf8.DecodeRune(page[at:])
		if turns(r) && tag <= text && !bytes.HasPrefix(page[tag:], []byte("textarea")) {
			out = fmt.Appendf(append(out, page[written:at]...), `\u%04x`, r)
			written = at + size
		}
		looked = at + size
	}
	if written == 0 {
		return page
	}
	return append(out, page[written:]...)
}

// turns reports whether a character embeds, overrides or isolates a direction of writing, or ends that.
func turns(r rune) bool { return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 }
