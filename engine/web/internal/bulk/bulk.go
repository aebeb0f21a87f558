package bulk

import (
	"context"
	"encoding/hex"
	"errors"
	"io"
	"net/url"
	"sync"
	"time"

	"bagpipe/engine/ask"
	"bagpipe/engine/fault"
	"bagpipe/engine/ledger"
	"bagpipe/engine/web/access"
	"bagpipe/engine/web/internal/desk"
	"bagpipe/layout"

	"golang.org/x/sync/errgroup"
)

// Most is how many items one act takes, and how long a preview holds.
const (
	Most     = 100_000
	holds    = time.Hour
	sideways = 64 // acts at once: they share a group of commits
	mostJobs = 1000
)

// Row is one item, and what became of it.
type Row struct {
	Item    layout.ItemID `json:"item"`
	Label   string        `json:"label"`
	Refused string        `json:"refused,omitempty" doc:"why it is, or would be"`
	Done    bool          `json:"done" doc:"it was acted on, or refused"`
	stamp   string
}

// Job is an act on many items: seen, under way or done.
type Job struct {
	ID      string    `json:"id"`
	Act     string    `json:"act"`
	Step    string    `json:"step,omitempty"`
	By      string    `json:"by"`
	Begun   bool      `json:"begun" doc:"false: a preview"`
	Ended   bool      `json:"ended"`
	Stopped bool      `json:"stopped"`
	Done    int       `json:"done" doc:"items that were acted on, or refused"`
	Refused int       `json:"refused"`
	Rows    []Row     `json:"items"`
	At      time.Time `json:"at"`

	wanted desk.Wanted
	owner  string // its account's address in the history
	stop   context.CancelFunc
}

// Jobs are the acts of one server.
type Jobs struct {
	d  *desk.Desk
	mu sync.Mutex // guards jobs, and what they hold
	// jobs hold by their identifiers; a preview is a job that was not begun.
	jobs map[string]*Job
}

// New gives the acts of a server.
func New(d *desk.Desk) *Jobs { return &Jobs{d: d, jobs: map[string]*Job{}} }

// Chosen are the items that are named, or, of none, those that fit what narrows a listing.
func (j *Jobs) Chosen(ctx context.Context, names []string, filter url.Values) (items []layout.ItemID, err error) {
	if filter == nil {
		for _, name := range names {
			id, err := j.d.Object(ctx, name)
			if err != nil {
				return nil, err
			}
			items = append(items, id)
		}
		return items, nil
	}
	f, err := j.d.Filter(ctx, filter)
	if err != nil {
		return nil, err
	}
	rows, err := j.d.Ask.Items(f, ask.Page{Limit: Most + 1})
	for _, row := range rows {
		items = append(items, row.Item)
	}
	return items, err
}

// Preview notes which items would be acted on, as they are now, and which would be refused.
func (j *Jobs) Preview(ctx context.Context, items []layout.ItemID, w desk.Wanted) (Job, error) {
	if _, err := j.d.Acts(ctx, access.Operator); err != nil {
		return Job{}, err
	}
	if err := w.Check(); err != nil {
		return Job{}, err
	}
	if len(items) == 0 {
		return Job{}, fault.New(fault.Invalid, "No item was chosen.")
	}
	if len(items) > Most {
		return Job{}, fault.New(fault.Invalid, "Too many items at once; narrow the list.")
	}
	random := make([]byte, 8)
	if _, err := io.ReadFull(j.d.Random, random); err != nil {
		return Job{}, err
	}
	who := desk.Who(ctx)
	job := &Job{ID: hex.EncodeToString(random), Act: w.Act, Step: string(w.Step), By: who.Name, At: j.d.Now(), wanted: w, owner: who.Email}
	for _, id := range items {
		if err := j.d.Reach(ctx, id); err != nil {
			return Job{}, err
		}
		m, err := j.d.Ask.Manifest(id)
		if err != nil {
			return Job{}, err
		}
		stamp, err := j.d.Ask.Stamp(id)
		if err != nil {
			return Job{}, err
		}
		job.Rows = append(job.Rows, Row{Item: id, Label: m.Label, stamp: stamp})
	}
	j.each(ledger.Rehearse(ctx), job)
	if err := ctx.Err(); err != nil {
		return Job{}, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for id, old := range j.jobs {
		if j.d.Now().Sub(old.At) > holds && (old.Ended || !old.Begun) || len(j.jobs) >= mostJobs && !old.Begun {
			delete(j.jobs, id)
		}
	}
	j.jobs[job.ID] = job
	return job.copied(), nil
}

func (b *Job) copied() Job {
	c := *b
	c.Rows = append([]Row(nil), b.Rows...)
	return c
}

// find gives the account's own job. The lock is held.
func (j *Jobs) find(ctx context.Context, id string) (*Job, error) {
	job := j.jobs[id]
	if job == nil || job.owner != desk.Who(ctx).Email {
		return nil, fault.New(fault.NotFound, "There is no such act on many items; it may be over since long.")
	}
	return job, nil
}

// Show tells how far an act is.
func (j *Jobs) Show(ctx context.Context, id string) (Job, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	job, err := j.find(ctx, id)
	if err != nil {
		return Job{}, err
	}
	return job.copied(), nil
}

// Begin does what was seen; again, it changes nothing. The work outlives ctx, but not the
// server.
func (j *Jobs) Begin(ctx context.Context, id string) (Job, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	job, err := j.find(ctx, id)
	if err != nil || job.Begun {
		if err != nil {
			return Job{}, err
		}
		return job.copied(), nil
	}
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	job.Begun, job.stop, job.Refused = true, stop, 0
	for i := range job.Rows {
		job.Rows[i].Refused = ""
	}
	go j.work(work, job)
	return job.copied(), nil
}

// Stop lets no further item be begun.
func (j *Jobs) Stop(ctx context.Context, id string) (Job, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	job, err := j.find(ctx, id)
	if err != nil {
		return Job{}, err
	}
	if job.stop != nil && !job.Ended {
		job.Stopped = true
		job.stop()
	}
	return job.copied(), nil
}

// work does what was seen.
func (j *Jobs) work(ctx context.Context, job *Job) {
	j.each(ctx, job)
	j.mu.Lock()
	defer j.mu.Unlock()
	job.Ended = true
	job.stop()
}

// each acts on the items side by side, or rehearses it, until ctx ends.
func (j *Jobs) each(ctx context.Context, job *Job) {
	var acting errgroup.Group
	acting.SetLimit(sideways)
	for i := range job.Rows {
		acting.Go(func() error {
			if ctx.Err() != nil {
				return nil
			}
			refused := j.one(context.WithoutCancel(ctx), job, job.Rows[i])
			j.mu.Lock()
			defer j.mu.Unlock()
			if job.Rows[i].Refused = refused; refused != "" {
				job.Refused++
			}
			if job.Begun {
				job.Done++
				job.Rows[i].Done = true
			}
			return nil
		})
	}
	_ = acting.Wait() // what is refused stands in its row
}

// one acts on an item that is still as it was seen, and tells why not.
func (j *Jobs) one(ctx context.Context, job *Job, row Row) string {
	wanted := job.wanted
	wanted.Seen = row.stamp
	_, err := j.d.Do(ctx, row.Item, wanted)
	if err == nil || errors.Is(err, ledger.ErrRehearsed) {
		return ""
	}
	if !ledger.IsRefused(err) {
		j.d.Log.Warn("an act on one of many items failed", "item", string(row.Item), "error", err)
	}
	return err.Error()
}
