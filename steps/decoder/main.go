package decoder

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"bagpipe/bags/confined"
)

const (
	variable = "BAGPIPE_DECODER" // holds a plan in JSON
	answers  = 3                 // the descriptor
)

// A Work answers requests, one at a time. Any error but an *fs.PathError is the file's.
type Work func(request json.RawMessage) (any, error)

// plan is what the process is told.
type plan struct {
	Work   string `json:"work"`
	Memory int64  `json:"memory"`
}

// reply is what the process says to one request.
type reply struct {
	Answer json.RawMessage `json:"answer,omitempty"`
	Error  string          `json:"error,omitempty"`
	System bool            `json:"system,omitempty"`
}

// Main does the work of a decoding process, if this process is one: ok is then true, and
// the program must end with the code at once. In any other process it does nothing.
func Main(works map[string]func() (Work, error)) (code int, ok bool) {
	conf := os.Getenv(variable)
	if conf == "" {
		return 0, false
	}
	if err := serve(conf, works, os.Stdin, os.NewFile(answers, "answers")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1, true
	}
	return 0, true
}

func serve(conf string, works map[string]func() (Work, error), in io.Reader, out io.Writer) error {
	var p plan
	if err := json.Unmarshal([]byte(conf), &p); err != nil {
		return fmt.Errorf("decoder: %w", err)
	}
	if err := confined.Limit(p.Memory); err != nil {
		return fmt.Errorf("decoder: %w", err)
	}
	start := works[p.Work]
	if start == nil {
		return fmt.Errorf("decoder: no work %q", p.Work)
	}
	work, err := start()
	if err != nil {
		return fmt.Errorf("decoder: start %s: %w", p.Work, err)
	}
	requests := make(chan json.RawMessage)
	go func() {
		for d := json.NewDecoder(in); ; {
			var request json.RawMessage
			if d.Decode(&request) != nil { // the parent ended, or asks no more
				os.Exit(0)
			}
			requests <- request
		}
	}()
	enc := json.NewEncoder(out)
	for request := range requests {
		if err := enc.Encode(answer(work, request)); err != nil {
			return fmt.Errorf("decoder: %w", err)
		}
	}
	return nil
}

// answer calls the work. A decoder that panics has met a file its author did not think of.
func answer(work Work, request json.RawMessage) (r reply) {
	defer func() {
		if p := recover(); p != nil {
			r = reply{Error: fmt.Sprintf("damaged: its decoder panics: %v", p)}
		}
	}()
	found, err := work(request)
	if err == nil {
		r.Answer, err = json.Marshal(found)
	}
	if err != nil {
		var path *fs.PathError
		return reply{Error: err.Error(), System: errors.As(err, &path)}
	}
	return r
}
