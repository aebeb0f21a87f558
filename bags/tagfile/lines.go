package tagfile

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/text/encoding"
)

// maxLine bounds one line of a tag file. A path is at most 4 KiB, an encoded one
// three times that; values in bag-info.txt are for people.
const maxLine = 1 << 20

// A Line of a tag file, without its end.
type Line struct {
	Text   string
	Number int
	Open   bool // the last line, without a line end
}

var (
	errLongLine = errors.New("a line is longer than 1 MiB")
	errNotText  = errors.New("the text is not in the declared encoding")
)

// lineBuffers hold 64 KiB each: more than a bag of few files has in all its tag files.
var lineBuffers = sync.Pool{New: func() any { b := make([]byte, 64<<10); return &b }}

var readers = sync.Pool{New: func() any { return bufio.NewReader(nil) }}

// EachLine calls do for every line. LF, CR and CR LF end lines (RFC 8493, 2.3). bom
// reports whether the text began with a byte-order mark, which is passed over.
func EachLine(r io.Reader, enc encoding.Encoding, do func(Line)) (bom bool, err error) {
	if enc != nil {
		r = enc.NewDecoder().Reader(r)
	}
	b := readers.Get().(*bufio.Reader)
	defer readers.Put(b)
	defer b.Reset(nil)
	b.Reset(r)
	if head, _ := b.Peek(3); bytes.Equal(head, []byte("\xef\xbb\xbf")) {
		bom = true
		if _, err := b.Discard(3); err != nil {
			return bom, err
		}
	}
	s := bufio.NewScanner(b)
	buffer := lineBuffers.Get().(*[]byte)
	defer lineBuffers.Put(buffer)
	s.Buffer((*buffer)[:0], maxLine)
	open := false
	s.Split(func(data []byte, atEOF bool) (int, []byte, error) {
		n, token := splitLine(data, atEOF)
		open = token != nil && n == len(token)
		return n, token, nil
	})
	for number := 1; s.Scan(); number++ {
		text := s.Text()
		// The decoders put U+FFFD where the bytes mean nothing.
		if !utf8.ValidString(text) || enc != nil && strings.ContainsRune(text, utf8.RuneError) {
			return bom, errNotText
		}
		do(Line{text, number, open})
	}
	if errors.Is(s.Err(), bufio.ErrTooLong) {
		return bom, errLongLine
	}
	return bom, s.Err()
}

func splitLine(data []byte, atEOF bool) (advance int, token []byte) {
	i := bytes.IndexAny(data, "\r\n")
	switch {
	case i < 0 && atEOF && len(data) > 0:
		return len(data), data
	case i < 0:
		return 0, nil
	case data[i] == '\n':
		return i + 1, data[:i]
	case i+1 < len(data) && data[i+1] == '\n':
		return i + 2, data[:i]
	case i+1 == len(data) && !atEOF:
		return 0, nil // LF may follow
	}
	return i + 1, data[:i]
}

// A NoteReader keeps the disk's error, so that it is told from an error of the text.
type NoteReader struct {
	R   io.Reader
	Err error
}

// Read keeps any error but io.EOF.
func (n *NoteReader) Read(p []byte) (int, error) {
	k, err := n.R.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		n.Err = err
	}
	return k, err
}
