package decoder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"bagpipe/bags/confined"
)

// Refused says that a file is broken, or asks for more memory or time than it may have.
type Refused struct{ Reason string }

func (r *Refused) Error() string { return r.Reason }

// Options bound a Worker's processes. Zero: 1 GiB, two minutes a request.
type Options struct {
	Work   string
	Memory int64
	Time   time.Duration
}

// maxAnswer is how long an answer may be: a view of 1,024 x 1,024 pixels fits in it.
const maxAnswer = 32 << 20

// A Worker asks one process after the other.
type Worker struct {
	o Options
	p *process
}

// New makes a worker; its first process starts with the first question.
func New(o Options) *Worker {
	if o.Memory == 0 {
		o.Memory = 1 << 30
	}
	if o.Time == 0 {
		o.Time = 2 * time.Minute
	}
	return &Worker{o: o}
}

type process struct {
	cmd  *exec.Cmd
	said *confined.Tail
	in   io.WriteCloser
	out  *os.File
}

// Ask puts a request to the process and reads the answer into found. The error is a
// *Refused when the file is at fault.
func (w *Worker) Ask(ctx context.Context, request, found any) error {
	if w.p == nil {
		p, err := start(w.o)
		if err != nil {
			return fmt.Errorf("start the decoder of %s: %w", w.o.Work, err)
		}
		w.p = p
	}
	var r reply
	limited, cancel := context.WithTimeout(ctx, w.o.Time)
	p := w.p // which the end of the time may meet while w.p is given up
	stop := context.AfterFunc(limited, func() { _ = p.cmd.Process.Kill() })
	err := p.exchange(request, &r)
	late := !stop()
	cancel()
	if err != nil || late {
		died := w.end()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case late:
			return &Refused{fmt.Sprintf("decoding takes longer than %s", w.o.Time)}
		}
		return w.cutShort(died, err)
	}
	switch {
	case r.System:
		return errors.New(r.Error)
	case r.Error != "":
		return &Refused{r.Error}
	}
	return json.Unmarshal(r.Answer, found)
}

// cutShort gives the reason why the process ended without an answer.
func (w *Worker) cutShort(died string, err error) error {
	switch {
	case confined.Exhausted(died):
		return &Refused{fmt.Sprintf("decoding needs more than the %d bytes of memory allowed", w.o.Memory)}
	case died == "signal: killed":
		return fmt.Errorf("the decoder of %s was killed; is the machine out of memory?", w.o.Work)
	case died != "":
		return &Refused{"the file makes its decoder fail: " + died}
	}
	return fmt.Errorf("ask the decoder of %s: %w", w.o.Work, err)
}

// Close ends the process. It may be called twice.
func (w *Worker) Close() {
	if w.p != nil {
		w.end()
	}
}

// end ends the process and gives its last words.
func (w *Worker) end() string {
	p := w.p
	w.p = nil
	_ = p.in.Close()
	_ = p.out.Close()
	err := p.cmd.Wait()
	if said := p.said.String(); said != "" || err == nil {
		return said
	}
	return err.Error()
}

func start(o Options) (*process, error) {
	if os.Getenv(variable) != "" {
		return nil, errors.New("a decoder starts no other: this program does not call decoder.Main")
	}
	conf, err := json.Marshal(plan{Work: o.Work, Memory: o.Memory})
	if err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p := &process{out: r}
	p.cmd, p.said = confined.Command(context.Background(), variable, string(conf), w) // ended by end
	if p.in, err = p.cmd.StdinPipe(); err == nil {
		err = p.cmd.Start()
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return p, nil
}

// exchange writes one request and reads one answer. Nothing follows an answer before the
// next request, so no byte is lost in the reader's buffer.
func (p *process) exchange(request any, r *reply) error {
	if err := json.NewEncoder(p.in).Encode(request); err != nil {
		return err
	}
	return json.NewDecoder(io.LimitReader(p.out, maxAnswer)).Decode(r)
}
