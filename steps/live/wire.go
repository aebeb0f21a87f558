package live

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"bagpipe/layout"
	"bagpipe/steps"
)

const (
	protocol = 1
	version  = "2.0"
	maxLine  = 8 << 20

	noSuchMethod = -32601
)

// request is what the engine sends; without an ID it is a notification.
type request struct {
	Version string `json:"jsonrpc"`
	ID      int64  `json:"id,omitempty"`
	Method  string `json:"method"`
	Params  any    `json:"params,omitempty"`
}

// message is what a program sends.
type message struct {
	Version string          `json:"jsonrpc"`
	ID      *int64          `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   *rpcError       `json:"error"`
}

type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// item is the params of a process: what a program started for one item is told by its
// standard input and its environment.
type item struct {
	Item       layout.ItemID `json:"item"`
	Label      string        `json:"label"`
	Collection layout.Name   `json:"collection"`
	Workflow   string        `json:"workflow"`
	Step       layout.Name   `json:"step"`
	Attempt    string        `json:"attempt"`
	places
	Deadline  string          `json:"deadline,omitempty"`
	Sample    bool            `json:"sample,omitempty"`
	Manifest  json.RawMessage `json:"manifest,omitempty"`
	Execution json.RawMessage `json:"execution,omitempty"`
}

// places are the folders and files of an item.
type places struct {
	Dir       string `json:"itemDir"`
	Source    string `json:"source"`
	Content   string `json:"content"`
	Derived   string `json:"derived"`
	Scratch   string `json:"scratch"`
	Inventory string `json:"inventory"`
}

func itemOf(c *steps.Call, deadline time.Time) item {
	it := item{Item: c.Item, Label: c.Label, Collection: c.Collection, Workflow: c.Workflow, Step: c.Step, Attempt: c.Attempt.String(),
		places: places{Dir: c.Dir, Source: c.Source, Content: c.Content, Derived: filepath.Join(c.Dir, layout.DerivedDir), Scratch: c.Scratch,
			Inventory: filepath.Join(c.Dir, layout.InventoryJSON)}, Sample: c.Item == "", Manifest: c.Manifest, Execution: c.Execution}
	if !deadline.IsZero() {
		it.Deadline = layout.FormatTime(deadline)
	}
	return it
}

// lines calls each for every whole line written to it. A line that is too long, and what
// each refuses, is told to broken; what comes after it is dropped.
type lines struct {
	each   func([]byte) error
	broken func(error)

	open []byte
	n    int
	done bool
}

// Write never fails: a program whose output nobody reads would hang.
func (l *lines) Write(p []byte) (int, error) {
	for part := range bytes.Lines(p) {
		if l.done {
			break
		}
		if len(l.open)+len(part) > maxLine {
			l.end(fmt.Errorf("line %d of its standard output is longer than %d bytes", l.n+1, maxLine))
			break
		}
		l.open = append(l.open, part...)
		if !bytes.HasSuffix(part, []byte("\n")) {
			continue
		}
		l.n++
		if line := bytes.TrimSpace(l.open); len(line) > 0 {
			if err := l.each(line); err != nil {
				l.end(fmt.Errorf("line %d of its standard output %w", l.n, err))
			}
		}
		l.open = l.open[:0]
	}
	return len(p), nil
}

func (l *lines) end(err error) {
	l.done, l.open = true, nil
	l.broken(err)
}

// parseMessage reads a line that a program sent.
func parseMessage(line []byte) (m message, err error) {
	if err := json.Unmarshal(line, &m); err != nil {
		return m, fmt.Errorf("is no message: %w: %.80q", err, line)
	}
	switch {
	case m.Version != version:
		return m, fmt.Errorf("is no message: expected \"jsonrpc\": %q: %.80q", version, line)
	case m.Method != "" && m.ID != nil:
		return m, fmt.Errorf("asks for %q; a robot is asked, and asks for nothing", m.Method)
	case m.Method == "" && m.ID == nil:
		return m, errors.New("answers no request: it has no id")
	case m.Method == "" && (m.Result == nil) == (m.Error == nil):
		return m, errors.New("is no answer: expected result or error, one of them")
	}
	return m, nil
}
