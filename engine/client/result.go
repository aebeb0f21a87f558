package client

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"bagpipe/engine/remote/wire"
	"bagpipe/layout"
)

// Result is how an item came to its end.
type Result struct {
	Item     layout.ItemID
	Label    string
	Failed   bool
	Metadata map[string]any
	Steps    []StepResult
	Children int

	c *Client
}

// StepResult is one step, by its last attempt.
type StepResult struct {
	Workflow, Step, Status string

	Attempt  string
	Attempts int
	Worker   string        // that did it; "": the engine's machine
	Waited   time.Duration // from when the step could have begun, as far as is known, to its claim
	Ran      time.Duration
	Message  string
}

// StepError is why an item failed.
type StepError struct {
	Item                    layout.ItemID
	Workflow, Step, Attempt string
	Kind                    string // content or system
	Worker                  string // "": the engine's machine
	Message                 string
	Log                     string // the end of what the robot wrote
}

func (e *StepError) Error() string {
	at := ""
	if e.Worker != "" {
		at = " at worker " + e.Worker
	}
	return fmt.Sprintf("item %s: %s failed%s (%s): %s", e.Item.Short(), e.Step, at, e.Kind, e.Message)
}

// detail is what the client reads of an item.
type detail struct {
	Manifest struct {
		Item     layout.ItemID  `json:"item"`
		Label    string         `json:"label"`
		Metadata map[string]any `json:"metadata"`
	} `json:"manifest"`
	Workflows []struct {
		Workflow string       `json:"workflow"`
		Status   string       `json:"status"`
		Created  time.Time    `json:"created"`
		Steps    []stepDetail `json:"steps"`
	} `json:"workflows"`
	Families []struct {
		All int `json:"all"`
	} `json:"families"`
}

type stepDetail struct {
	Step     string          `json:"step"`
	Status   string          `json:"status"`
	Attempts []attemptDetail `json:"attempts"`
}

type attemptDetail struct {
	Attempt string    `json:"attempt"`
	Lost    bool      `json:"lost"`
	Kind    string    `json:"kind"`
	Claimed time.Time `json:"claimed"`
	Ended   time.Time `json:"ended"`
	Elapsed float64   `json:"elapsed"`
	Agent   string    `json:"agent"`
	Message string    `json:"message"`
	Log     string    `json:"log"`
}

// over reports whether nothing of the item goes on by itself any more.
func (d *detail) over() bool {
	for _, w := range d.Workflows {
		if w.Status == "in-progress" || w.Status == "scheduled" || w.Status == "waiting" || w.Status == "active" {
			return false
		}
	}
	return len(d.Workflows) > 0
}

func (c *Client) detail(ctx context.Context, id layout.ItemID) (d detail, err error) {
	err = lasting(ctx, func() error {
		d = detail{}
		return c.call(ctx, http.MethodGet, "items/"+escaped(string(id)), nil, &d)
	})
	return d, err
}

// Result waits for the item's end. The error of an item that failed is a *StepError; the result
// is there also then.
func (s *Sent) Result(ctx context.Context) (*Result, error) {
	select {
	case <-s.ended:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-s.c.watch.closed:
		return nil, ErrClosed
	}
	d, err := s.c.detail(ctx, s.Item)
	if err != nil {
		return nil, err
	}
	r := &Result{Item: s.Item, Label: d.Manifest.Label, Metadata: d.Manifest.Metadata, c: s.c}
	for _, f := range d.Families {
		r.Children += f.All
	}
	var failed *StepError
	for _, w := range d.Workflows {
		ready := w.Created
		for _, step := range w.Steps {
			one := StepResult{Workflow: w.Workflow, Step: step.Step, Status: step.Status, Attempts: len(step.Attempts)}
			if n := len(step.Attempts); n > 0 {
				last := step.Attempts[n-1]
				one.Attempt, one.Message, one.Ran = last.Attempt, last.Message, time.Duration(last.Elapsed*float64(time.Second))
				one.Worker, _, _ = performer(last.Agent)
				one.Waited = max(0, step.Attempts[0].Claimed.Sub(ready))
				if last.Ended.After(ready) {
					ready = last.Ended
				}
				if step.Status == "failed" && w.Status == "failed" && failed == nil {
					failed = &StepError{Item: s.Item, Workflow: w.Workflow, Step: step.Step, Attempt: last.Attempt, Kind: last.Kind, Worker: one.Worker, Message: last.Message}
					failed.Log = s.c.logEnd(ctx, failed, last.Log)
				}
			}
			r.Steps = append(r.Steps, one)
		}
		r.Failed = r.Failed || w.Status == "failed"
	}
	if failed != nil {
		return r, failed
	}
	return r, nil
}

// performer reads an attempt's agent: WORKER@HOST:PID, or HOST:PID of the engine's machine,
// both perhaps behind the name of a step.
func performer(agent string) (worker, host, pid string) {
	word := agent[strings.LastIndexByte(agent, ' ')+1:]
	word = word[strings.LastIndexByte(word, '/')+1:]
	if i := strings.IndexByte(word, '@'); i >= 0 {
		worker, word = word[:i], word[i+1:]
	}
	if i := strings.LastIndexByte(word, ':'); i >= 0 {
		word, pid = word[:i], word[i+1:]
	}
	return worker, word, pid
}

// logEnd is the end of what a failed attempt wrote; "" where it cannot be had.
func (c *Client) logEnd(ctx context.Context, e *StepError, log string) string {
	const most = 4 << 10
	if log == "" {
		return ""
	}
	res, err := c.do(ctx, http.MethodGet, "items/"+escaped(string(e.Item))+"/logs/"+escaped(e.Step)+"/"+escaped(e.Attempt), nil, http.Header{})
	if err != nil {
		return ""
	}
	defer res.Body.Close()
	var end []byte
	part := make([]byte, most)
	for {
		n, err := res.Body.Read(part)
		if end = append(end, part[:n]...); len(end) > most {
			end = append(end[:0], end[len(end)-most:]...)
		}
		if err != nil {
			return string(end)
		}
	}
}

// Files lists what the item is now, below content/ or source/, and what its robots made, below
// derived/STEP/.
func (r *Result) Files(ctx context.Context) (files []wire.File, err error) {
	err = lasting(ctx, func() error {
		files = nil
		return r.c.call(ctx, http.MethodGet, "items/"+escaped(string(r.Item))+"/result", nil, &files)
	})
	return files, err
}

// Save writes the item's files below a folder, each verified; one that is there as it is to be
// is left alone.
func (r *Result) Save(ctx context.Context, dir string) error {
	files, err := r.Files(ctx)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, f := range files {
		if err := r.saveFile(ctx, root, f); err != nil {
			return fmt.Errorf("save %s: %w", f.Path, err)
		}
	}
	return nil
}

func (r *Result) saveFile(ctx context.Context, root *os.Root, f wire.File) error {
	p, err := layout.DecodePath(f.Path)
	if err != nil {
		return err
	}
	rel, err := layout.ParseRelPath(p)
	if err != nil {
		return err
	}
	if have, err := summedFile(root.FS(), string(rel)); err == nil && have.SHA256 == f.SHA256 {
		return nil
	}
	if err := root.MkdirAll(filepath.Dir(string(rel)), 0o777); err != nil {
		return err
	}
	part := string(rel) + ".part"
	err = lasting(ctx, func() error {
		res, err := r.c.do(ctx, http.MethodGet, "items/"+escaped(string(r.Item))+"/result/"+escaped(f.Path), nil, http.Header{})
		if err != nil {
			return err
		}
		defer res.Body.Close()
		mode := os.FileMode(0o666)
		if f.Exec {
			mode = 0o777
		}
		out, err := root.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
		if err != nil {
			return &Error{Status: http.StatusInsufficientStorage, Code: "here", Detail: err.Error()}
		}
		sum := sha256.New()
		_, err = io.Copy(io.MultiWriter(out, sum), res.Body)
		if err = errors.Join(err, out.Close()); err == nil && hex.EncodeToString(sum.Sum(nil)) != f.SHA256 {
			err = errors.New("other bytes came than those of the file")
		}
		return err
	})
	if err != nil {
		return err
	}
	return root.Rename(part, string(rel))
}

// Cancel ends what runs on the item, or is about to, as failed; and on its children, so that a
// multiplier stops with all that came of it.
func (s *Sent) Cancel(ctx context.Context, why string) error {
	return s.c.cancel(ctx, string(s.Item), why)
}

func (c *Client) cancel(ctx context.Context, id, why string) error {
	stop := func(id string) error {
		err := lasting(ctx, func() error {
			return c.call(ctx, http.MethodPost, "items/"+escaped(id)+"/acts", map[string]string{"act": "cancel", "message": why}, nil)
		})
		if is(err, http.StatusConflict) {
			return nil // nothing of it runs
		}
		return err
	}
	if err := stop(id); err != nil {
		return fmt.Errorf("cancel item %s: %w", id, err)
	}
	seen := map[string]bool{}
	for {
		var page []struct {
			Item     string `json:"item"`
			Children int    `json:"children"`
		}
		q := url.Values{"parent": {id}, "status": {"in-progress"}, "limit": {"1000"}}
		if err := lasting(ctx, func() error { return c.call(ctx, http.MethodGet, "items?"+q.Encode(), nil, &page) }); err != nil {
			return fmt.Errorf("list the children of item %s: %w", id, err)
		}
		fresh := false
		for _, child := range page {
			if seen[child.Item] {
				continue
			}
			seen[child.Item], fresh = true, true
			if err := c.cancel(ctx, child.Item, why); err != nil {
				return err
			}
		}
		if !fresh {
			return nil
		}
	}
}
