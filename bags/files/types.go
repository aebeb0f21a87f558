package files

import (
	"bytes"

	"github.com/gabriel-vasile/mimetype"
)

// Types gives the MIME types of a file by its first bytes, the most exact one first, then what it is a kind of.
// BigTIFF, which the library does not know, is image/tiff, too.
func Types(head []byte) (types []string) {
	if bytes.HasPrefix(head, []byte("II+\x00\x08\x00\x00\x00")) || bytes.HasPrefix(head, []byte("MM\x00+\x00\x08\x00\x00")) {
		types = []string{"image/tiff"}
	}
	for t := mimetype.Detect(head); t != nil; t = t.Parent() {
		types = append(types, t.String())
	}
	return types
}
