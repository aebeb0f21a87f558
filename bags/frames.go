package bags

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"
)

// What a reading process says to the one that started it, on a pipe. The rules
// are:
//
//   - a frame is one byte of kind, four of length (little endian), and its body;
//   - 'H' begins a member, 'D' is some of its bytes, 'E' its end;
//   - 'X' is a broken rule and ends everything, 'M' a fault of the machine too;
//   - 'F' is the archive's end; a stream without one of the three was cut short.
const (
	frameMember  = 'H'
	frameData    = 'D'
	frameEnd     = 'E'
	frameBroken  = 'X'
	frameMachine = 'M'
	frameFinal   = 'F'
)

// maxFrame bounds a frame's body, whoever wrote it.
const maxFrame = 1 << 20

// frameHead is the body of an 'H' frame. Names are bytes: JSON would change what
// is not UTF-8.
type frameHead struct {
	Name   []byte      `json:"name"`
	Folder bool        `json:"folder,omitempty"`
	Mode   fs.FileMode `json:"mode"`
	Time   time.Time   `json:"time"`
	Size   int64       `json:"size"` // -1: the archive does not say
	Sum    *uint32     `json:"sum,omitempty"`
	Rule   Rule        `json:"rule,omitempty"` // why the member cannot be taken
	Detail string      `json:"detail,omitempty"`
}

// frameError is the body of an 'X' frame.
type frameError struct {
	Member []byte `json:"member,omitempty"`
	Rule   Rule   `json:"rule"`
	Detail string `json:"detail"`
}

type frameWriter struct{ w *bufio.Writer }

func (f frameWriter) put(kind byte, body []byte) error {
	var head [5]byte
	head[0] = kind
	binary.LittleEndian.PutUint32(head[1:], uint32(len(body)))
	if _, err := f.w.Write(head[:]); err != nil {
		return err
	}
	_, err := f.w.Write(body)
	return err
}

func (f frameWriter) putJSON(kind byte, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(body) > maxFrame {
		return fmt.Errorf("a frame of %d bytes", len(body))
	}
	return f.put(kind, body)
}

// Write sends a member's bytes.
func (f frameWriter) Write(p []byte) (int, error) {
	done := 0
	for done < len(p) {
		part := p[done:min(len(p), done+maxFrame)]
		if err := f.put(frameData, part); err != nil {
			return done, err
		}
		done += len(part)
	}
	return done, nil
}

// errCut says that the reading process ended without a last word.
var errCut = errors.New("the archive's reader ended early")

// readerFault is a fault of the machine that the reading process met.
type readerFault string

func (e readerFault) Error() string { return string(e) }

type frameReader struct {
	r     *bufio.Reader
	left  int   // bytes of the current 'D' frame
	open  bool  // within a member
	names bool  // members come without bytes and ends
	err   error // the last word
}

// next reads a frame's head, and its body but for data.
func (f *frameReader) next() (kind byte, body []byte, err error) {
	if f.err != nil {
		return 0, nil, f.err
	}
	var head [5]byte
	if _, err := io.ReadFull(f.r, head[:]); err != nil {
		return 0, nil, errCut
	}
	n := binary.LittleEndian.Uint32(head[1:])
	if n > maxFrame {
		return 0, nil, errCut
	}
	if head[0] == frameData {
		f.left = int(n)
		return frameData, nil, nil
	}
	body = make([]byte, n)
	if _, err := io.ReadFull(f.r, body); err != nil {
		return 0, nil, errCut
	}
	switch head[0] {
	case frameMember, frameEnd:
		return head[0], body, nil
	case frameFinal:
		f.err = io.EOF
	case frameMachine:
		f.err = readerFault(body)
	case frameBroken:
		var e frameError
		if err := json.Unmarshal(body, &e); err != nil || e.Rule == "" {
			return 0, nil, errCut
		}
		f.err = &Error{Member: string(e.Member), Rule: e.Rule, Detail: e.Detail}
	default:
		return 0, nil, errCut
	}
	return 0, nil, f.err
}

// member gives the next member; io.EOF after the last. The one before must have
// been read to its end.
func (f *frameReader) member() (h frameHead, err error) {
	kind, body, err := f.next()
	if err != nil {
		return h, err
	}
	if kind != frameMember || json.Unmarshal(body, &h) != nil {
		return h, errCut
	}
	f.open = !f.names
	return h, nil
}

// Read gives the current member's bytes, to its end frame.
func (f *frameReader) Read(p []byte) (int, error) {
	for f.left == 0 {
		if !f.open {
			return 0, io.EOF
		}
		kind, _, err := f.next()
		switch {
		case errors.Is(err, io.EOF), err == nil && kind == frameMember:
			return 0, errCut
		case err != nil:
			return 0, err
		case kind == frameEnd:
			f.open = false
			return 0, io.EOF
		}
	}
	n, err := f.r.Read(p[:min(len(p), f.left)])
	f.left -= n
	if err != nil {
		return n, errCut
	}
	return n, nil
}

// last says how it ended.
func (f frameWriter) last(err error) error {
	var e *Error
	var m readerFault
	switch {
	case err == nil:
		return f.put(frameFinal, nil)
	case errors.As(err, &e):
		return f.putJSON(frameBroken, frameError{[]byte(e.Member), e.Rule, e.Detail})
	case errors.As(err, &m):
		return f.put(frameMachine, []byte(m))
	}
	return err
}
