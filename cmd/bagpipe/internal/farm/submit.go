package farm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/engine/client"
)

// Submit submits items to a server, as programs do through engine/client.
type Submit struct {
	Path       []string          `arg:"" help:"Files or folders; each becomes one item."`
	Server     string            `default:"http://127.0.0.1:8470/" placeholder:"URL" env:"BAGPIPE_SERVER" help:"Where bagpipe serve answers; default: http://127.0.0.1:8470/ ($BAGPIPE_SERVER)."`
	Token      string            `placeholder:"FILE" help:"A file with the token of an account; default: the token in $BAGPIPE_TOKEN."`
	Key        string            `placeholder:"KEY" help:"Names the submission for good: one that comes again is the same item. For one path only; default: drawn."`
	Collection string            `placeholder:"NAME" help:"The collection; default: the rules', or default."`
	Workflow   string            `placeholder:"NAME" help:"The workflow; default: the rules' or the collection's."`
	Label      string            `placeholder:"TEXT" help:"The item's label; default: the path's name. For one path only."`
	Lane       string            `placeholder:"NAME" help:"The lane (priority)."`
	Batch      string            `placeholder:"NAME" help:"The batch it belongs to; begun by its first item."`
	On         string            `placeholder:"WORKER" help:"The worker that is to do the steps that are placed on workers."`
	Identifier map[string]string `placeholder:"KIND=VALUE" mapsep:"none" help:"An identifier of the item."`

	submitEnd
	JSON bool `name:"json" help:"One JSON object a line."`
}

type submitEnd struct {
	Wait          bool   `help:"Wait for the items' ends, and tell of each."`
	BatchComplete bool   `help:"With --batch: close it, and wait until its items are done, and the steps that are done once for all of them."`
	Save          string `placeholder:"DIR" writes:"" help:"Wait, and write the results of each item to DIR/LABEL."`
	InFlight      int    `default:"100" placeholder:"N" help:"Items under way at once; default: 100."`
}

// Validate is called by kong.
func (c *Submit) Validate() error {
	switch {
	case len(c.Path) > 1 && (c.Key != "" || c.Label != ""):
		return errors.New("--key and --label are for one path")
	case c.BatchComplete && c.Batch == "":
		return errors.New("--batch-complete is for --batch")
	case c.InFlight < 1:
		return errors.New("--in-flight: expected a number from 1")
	}
	return nil
}

// submitted is what is printed of an item.
type submitted struct {
	Path   string  `json:"path"`
	Key    string  `json:"key"`
	Item   string  `json:"item"`
	Status string  `json:"status,omitempty"`
	Error  string  `json:"error,omitempty"`
	Ran    float64 `json:"ran,omitempty"` // seconds of all steps
}

// Run submits.
func (c *Submit) Run(ctx context.Context, on *screen.Screen) error {
	token, err := c.token()
	if err != nil {
		return err
	}
	to, err := client.Dial(ctx, c.Server, client.Options{Token: token, InFlight: c.InFlight})
	if err != nil {
		return err
	}
	defer to.Close()
	var wg sync.WaitGroup
	told := teller{on: on, json: c.JSON}
	var broken error
	for _, path := range c.Path {
		sent, err := to.Submit(ctx, client.Submission{Key: c.Key, Path: path, Said: client.Said{Collection: c.Collection, Workflow: c.Workflow, Label: c.Label, Lane: c.Lane, Batch: c.Batch,
			Worker: c.On, Identifiers: c.Identifier}})
		if err != nil {
			broken = err
			break
		}
		if !c.Wait && c.Save == "" {
			told.tell(submitted{Path: path, Key: sent.Key, Item: string(sent.Item)}, nil)
			continue
		}
		wg.Go(func() { told.tell(c.ended(ctx, path, sent)) })
	}
	wg.Wait()
	if broken == nil && c.BatchComplete {
		broken = c.complete(ctx, to, &told)
	}
	if ctx.Err() != nil {
		return screen.ExitInterrupted
	}
	if err := errors.Join(broken, told.broken); err != nil {
		return err
	}
	if told.failed {
		return screen.ExitSomeFailed
	}
	return nil
}

func (c *Submit) token() (string, error) {
	if c.Token == "" {
		return os.Getenv("BAGPIPE_TOKEN"), nil
	}
	data, err := os.ReadFile(c.Token)
	return string(trimmed(data)), err
}

func trimmed(data []byte) []byte {
	for len(data) > 0 && (data[len(data)-1] == '\n' || data[len(data)-1] == '\r') {
		data = data[:len(data)-1]
	}
	return data
}

// ended waits for an item's end.
func (c *Submit) ended(ctx context.Context, path string, sent *client.Sent) (submitted, error) {
	out := submitted{Path: path, Key: sent.Key, Item: string(sent.Item), Status: "completed"}
	r, err := sent.Result(ctx)
	var failed *client.StepError
	if errors.As(err, &failed) {
		out.Status, out.Error, err = "failed", failed.Error(), nil
	}
	if err != nil {
		return out, err
	}
	var ran time.Duration
	for _, s := range r.Steps {
		ran += s.Ran
	}
	out.Ran = ran.Seconds()
	if c.Save != "" {
		at, err := saveDir(c.Save, filepath.Base(r.Label), out.Item)
		if err != nil {
			return out, err
		}
		return out, r.Save(ctx, at)
	}
	return out, nil
}

// saveDir makes the folder for what became of an item: LABEL, or LABEL-ITEM where that is taken,
// as by another item, whose files it would be mixed with.
func saveDir(within, label, item string) (string, error) {
	if err := os.MkdirAll(within, 0o777); err != nil {
		return "", err
	}
	at := filepath.Join(within, label)
	err := os.Mkdir(at, 0o777)
	if errors.Is(err, fs.ErrExist) {
		return at + "-" + item, nil
	}
	return at, err
}

// complete closes the batch.
func (c *Submit) complete(ctx context.Context, to *client.Client, told *teller) error {
	b, err := to.Batch(c.Batch).Complete(ctx)
	if err != nil {
		return err
	}
	told.failed = told.failed || b.Failed > 0
	if !c.JSON {
		_, err = fmt.Fprintf(told.on.Out, "batch %s: %s, %d failed\n", c.Batch, screen.Count(b.Items, "item"), b.Failed)
	}
	return err
}

// teller prints one item at a time.
type teller struct {
	on     *screen.Screen
	json   bool
	mu     sync.Mutex // guards the rest, and the screen
	failed bool
	broken error
}

func (t *teller) tell(one submitted, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		t.broken = errors.Join(t.broken, fmt.Errorf("%s: %w", one.Path, err))
		return
	}
	t.failed = t.failed || one.Status == "failed"
	if t.json {
		t.broken = errors.Join(t.broken, t.on.JSONLine(one))
		return
	}
	text := one.Item + "  " + one.Path
	if one.Status != "" {
		text = fmt.Sprintf("%-9s  %s  %s", one.Status, one.Item, one.Path)
	}
	if one.Error != "" {
		text += ": " + screen.Short(one.Error, 300)
	}
	fmt.Fprintln(t.on.Out, text)
}
