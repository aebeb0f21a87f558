package frames

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"bagpipe/bags/files"
)

// The frames on the pipe, from the reading process to the process that started it. The
// rules are:
//
//   - a frame is one byte of kind, four of length (little endian), and its body;
//   - 'H' begins a member, 'D' is some of its bytes, 'E' its end;
//   - 'X' is a broken rule and ends everything, 'M' a fault of the machine too;
//   - 'F' is the archive's end; a stream without one of the three was cut short.
const (
	Member       = 'H'
	Data         = 'D'
	End          = 'E'
	frameBroken  = 'X'
	frameMachine = 'M'
	frameFinal   = 'F'
)

// maxFrame bounds a frame's body, whoever wrote it.
const maxFrame = 1 << 20

// Head is the body of an 'H' frame. Names are bytes: JSON would change those that are
// not UTF-8.
type Head struct {
	Name   []byte      `json:"name"`
	Folder bool        `json:"folder,omitempty"`
	Mode   fs.FileMode `json:"mode"`
	Time   time.Time   `json:"time"`
	Size   int64       `json:"size"` // -1: the archive does not say
	Sum    *uint32     `json:"sum,omitempty"`
	Rule   files.Rule  `json:"rule,omitempty"` // why the member cannot be taken
	Detail string      `json:"detail,omitempty"`
}

// frameError is the body of an 'X' frame.
type frameError struct {
	Member []byte     `json:"member,omitempty"`
	Rule   files.Rule `json:"rule"`
	Detail string     `json:"detail"`
}

// A Writer puts frames on the pipe.
type Writer struct{ W *bufio.Writer }

// Put writes one frame.
func (f Writer) Put(kind byte, body []byte) error {
	var head [5]byte
	head[0] = kind
	binary.LittleEndian.PutUint32(head[1:], uint32(len(body)))
	if _, err := f.W.Write(head[:]); err != nil {
		return err
	}
	_, err := f.W.Write(body)
	return err
}

// PutJSON writes one frame with v as its body.
func (f Writer) PutJSON(kind byte, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(body) > maxFrame {
		return fmt.Errorf("a frame of %d bytes", len(body))
	}
	return f.Put(kind, body)
}

// Write sends a member's bytes.
func (f Writer) Write(p []byte) (int, error) {
	done := 0
	for done < len(p) {
		part := p[done:min(len(p), done+maxFrame)]
		if err := f.Put(Data, part); err != nil {
			return done, err
		}
		done += len(part)
	}
	return done, nil
}

// ErrCut says that the process ended without a last word.
var ErrCut = errors.New("the archive's reader ended early")

// A Fault is a fault of the machine that the process met.
type Fault string

// Error gives the words of the process.
func (e Fault) Error() string { return string(e) }

// A Reader takes frames from the pipe: members, and the bytes of the current member.
type Reader struct {
	R     *bufio.Reader
	left  int   // bytes of the current 'D' frame
	open  bool  // within a member
	Names bool  // members come without bytes and ends
	err   error // the last word
}

// next reads a frame's head, and its body but for data.
func (f *Reader) next() (kind byte, body []byte, err error) {
	if f.err != nil {
		return 0, nil, f.err
	}
	var head [5]byte
	if _, err := io.ReadFull(f.R, head[:]); err != nil {
		return 0, nil, ErrCut
	}
	n := binary.LittleEndian.Uint32(head[1:])
	if n > maxFrame {
		return 0, nil, ErrCut
	}
	if head[0] == Data {
		f.left = int(n)
		return Data, nil, nil
	}
	body = make([]byte, n)
	if _, err := io.ReadFull(f.R, body); err != nil {
		return 0, nil, ErrCut
	}
	switch head[0] {
	case Member, End:
		return head[0], body, nil
	case frameFinal:
		f.err = io.EOF
	case frameMachine:
		f.err = Fault(body)
	case frameBroken:
		var e frameError
		if err := json.Unmarshal(body, &e); err != nil || e.Rule == "" {
			return 0, nil, ErrCut
		}
		f.err = &files.Error{Member: string(e.Member), Rule: e.Rule, Detail: e.Detail}
	default:
		return 0, nil, ErrCut
	}
	return 0, nil, f.err
}

// Member gives the next member; io.EOF after the last. The bytes of the member before
// must have been read to their end.
func (f *Reader) Member() (h Head, err error) {
	kind, body, err := f.next()
	if err != nil {
		return h, err
	}
	if kind != Member || json.Unmarshal(body, &h) != nil {
		return h, ErrCut
	}
	f.open = !f.Names
	return h, nil
}

// Read gives the current member's bytes, to its end frame.
func (f *Reader) Read(p []byte) (int, error) {
	for f.left == 0 {
		if !f.open {
			return 0, io.EOF
		}
		kind, _, err := f.next()
		switch {
		case errors.Is(err, io.EOF), err == nil && kind == Member:
			return 0, ErrCut
		case err != nil:
			return 0, err
		case kind == End:
			f.open = false
			return 0, io.EOF
		}
	}
	n, err := f.R.Read(p[:min(len(p), f.left)])
	f.left -= n
	if err != nil {
		return n, ErrCut
	}
	return n, nil
}

// Last writes the last frame: the error that ended the reading, or the archive's end.
func (f Writer) Last(err error) error {
	var e *files.Error
	var m Fault
	switch {
	case err == nil:
		return f.Put(frameFinal, nil)
	case errors.As(err, &e):
		return f.PutJSON(frameBroken, frameError{[]byte(e.Member), e.Rule, e.Detail})
	case errors.As(err, &m):
		return f.Put(frameMachine, []byte(m))
	}
	return err
}
