package client

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"sync"

	"bagpipe/engine/remote/wire"
	"bagpipe/layout"
)

// Submission is an object that is to become an item: the file or folder Path of this machine, or
// the files of From under a name.
type Submission struct {
	// Key names the submission for good: one that comes again, also after a crash of either
	// side, is the same item. "" draws one.
	Key  string
	Path string
	Name string // of the drop; "": that of Path
	From fs.FS  // instead of Path; a drop of one file is the file Name in it
	Said
}

// Said is what a program says of what it submits. What is left out the rules say.
type Said struct {
	Collection, Workflow, Label, Lane, Batch string

	Worker      string // that is to do the steps that are placed on workers; "": any
	Identifiers map[string]string
	Metadata    map[string]any
}

// Sent is a submission that became an item.
type Sent struct {
	Key        string
	Item       layout.ItemID
	Collection string
	Label      string

	c     *Client
	ended chan struct{}
	once  sync.Once
	free  func() // gives its place back
}

// Done is closed when no workflow of the item goes on by itself any more: all are completed, or
// one failed for good.
func (s *Sent) Done() <-chan struct{} { return s.ended }

// Submit sends an object and answers when it is an item. It blocks while as many submissions as
// Options.InFlight are under way.
func (c *Client) Submit(ctx context.Context, s Submission) (*Sent, error) {
	select {
	case c.flight <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	err := c.watch.begin(ctx)
	var sent *Sent
	if err == nil {
		sent, err = c.submit(ctx, s)
	}
	if err != nil {
		<-c.flight
		return nil, fmt.Errorf("submit %s: %w", path.Base(filepath.ToSlash(s.Path+s.Name)), err)
	}
	sent.free = func() { <-c.flight }
	c.watch.add(sent)
	return sent, nil
}

// SubmitAndWait submits, and waits for the item's end. The error of an item that failed is a
// *StepError; the result is there also then.
func (c *Client) SubmitAndWait(ctx context.Context, s Submission) (*Result, error) {
	sent, err := c.Submit(ctx, s)
	if err != nil {
		return nil, err
	}
	return sent.Result(ctx)
}

// From submits what an iterator gives, until it ends, and tells each; an error of the iterator,
// of a submission or of told ends it.
func (c *Client) From(ctx context.Context, all iter.Seq2[Submission, error], told func(*Sent) error) error {
	for s, err := range all {
		if err != nil {
			return err
		}
		sent, err := c.Submit(ctx, s)
		if err == nil && told != nil {
			err = told(sent)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Attach finds the item of a submission by its key, also one of another program. Where nothing
// became an item yet the error is an *Error with Status 404.
func (c *Client) Attach(ctx context.Context, key string) (*Sent, error) {
	if err := c.watch.begin(ctx); err != nil {
		return nil, fmt.Errorf("attach to %s: %w", key, err)
	}
	got, err := c.submitted(ctx, key)
	if err == nil && got.Item == "" {
		err = &Error{Status: http.StatusNotFound, Code: "not-found", Detail: "the submission is not complete; it is to be submitted again"}
	}
	if err != nil {
		return nil, fmt.Errorf("attach to %s: %w", key, err)
	}
	sent := c.sentOf(got)
	c.watch.add(sent)
	return sent, nil
}

func (c *Client) sentOf(got wire.Submitted) *Sent {
	return &Sent{Key: got.Key, Item: got.Item, Collection: string(got.Collection), Label: got.Label, c: c, ended: make(chan struct{}), free: func() {}}
}

func (c *Client) submitted(ctx context.Context, key string) (got wire.Submitted, err error) {
	err = lasting(ctx, func() error {
		got = wire.Submitted{}
		return c.call(ctx, http.MethodGet, "submissions/"+escaped(key), nil, &got)
	})
	return got, err
}

// mostSends is how often a file is sent that does not arrive as it is.
const mostSends = 3

func (c *Client) submit(ctx context.Context, s Submission) (*Sent, error) {
	if s.Key == "" {
		s.Key = rand.Text()
	}
	got, err := c.submitted(ctx, s.Key)
	switch {
	case is(err, http.StatusNotFound):
	case err != nil:
		return nil, err
	case got.Item != "":
		return c.sentOf(got), nil
	}
	body, open, err := s.described(ctx)
	if err != nil {
		return nil, err
	}
	want := map[string]bool{}
	for _, f := range body.Files {
		want[f.Path] = true
	}
	for n := 0; ; n++ {
		for _, f := range body.Files {
			if !want[f.Path] {
				continue
			}
			if err := c.sendFile(ctx, s.Key, f, got.Here[f.Path], open); err != nil {
				return nil, err
			}
		}
		got = wire.Submitted{}
		if err := lasting(ctx, func() error {
			return c.call(ctx, http.MethodPost, "submissions/"+escaped(s.Key)+"/end", body, &got)
		}); err != nil {
			return nil, err
		}
		if got.Item != "" {
			c.watch.tell(Event{Kind: EventSent, Key: s.Key, Item: got.Item})
			return c.sentOf(got), nil
		}
		if n == mostSends || len(got.Want) == 0 {
			return nil, fmt.Errorf("%v did not arrive as sent, %d times", got.Want, n+1)
		}
		clear(want)
		for _, p := range got.Want {
			want[p] = true
		}
	}
}

// sendFile sends what is not there of a file.
func (c *Client) sendFile(ctx context.Context, key string, f wire.File, here int64, open func(string) (io.ReadCloser, error)) error {
	if here == f.Size && f.Size > 0 {
		return nil // its digest is compared at the end
	}
	if here > f.Size {
		here = 0
	}
	in, err := open(f.Path)
	if err != nil {
		return err
	}
	defer in.Close()
	if _, err := io.CopyN(io.Discard, in, here); err != nil {
		return err
	}
	part := make([]byte, min(partSize, max(f.Size-here, 1)))
	at := "submissions/" + escaped(key) + "/files/" + escaped(f.Path)
	for offset := here; ; {
		n, err := io.ReadFull(in, part[:min(int64(len(part)), f.Size-offset)])
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("%s changed while it was sent: %w", f.Path, err)
		}
		if err := c.part(ctx, at, offset, part[:n]); err != nil {
			return fmt.Errorf("send %s: %w", f.Path, err)
		}
		if offset += int64(n); offset >= f.Size {
			return nil
		}
	}
}

// described lists the files with their digests.
func (s *Submission) described(ctx context.Context) (body wire.Submission, open func(string) (io.ReadCloser, error), err error) {
	body = wire.Submission{Collection: layout.Name(s.Collection), Workflow: s.Workflow, Label: s.Label, Lane: s.Lane, Batch: layout.Name(s.Batch), Worker: layout.Name(s.Worker),
		Identifiers: s.Identifiers, Metadata: s.Metadata}
	from, at, name := s.From, ".", s.Name
	if from == nil {
		whole, err := filepath.Abs(s.Path)
		if err != nil {
			return body, nil, err
		}
		from, at = os.DirFS(filepath.Dir(whole)), filepath.Base(whole)
		if name == "" {
			name = at
		}
	} else if info, err := fs.Stat(from, name); err == nil && info.Mode().IsRegular() {
		at = name
	}
	told := map[string]string{} // the paths in from, by those that are told
	err = fs.WalkDir(from, at, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		rel := name
		if below, err := filepath.Rel(at, p); err == nil && below != "." {
			rel = path.Join(name, filepath.ToSlash(below))
		}
		rel = layout.EncodePath(rel)
		switch {
		case d.IsDir():
			body.Folders = append(body.Folders, rel)
			return nil
		case !d.Type().IsRegular():
			return fmt.Errorf("%s is no file and no folder", p)
		}
		f, err := summedFile(from, p)
		f.Path, told[rel] = rel, p
		body.Files = append(body.Files, f)
		return err
	})
	return body, func(p string) (io.ReadCloser, error) { return from.Open(told[p]) }, err
}

func summedFile(from fs.FS, p string) (out wire.File, err error) {
	f, err := from.Open(p)
	if err != nil {
		return out, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return out, err
	}
	h := sha256.New()
	n, err := io.Copy(h, f)
	return wire.File{Size: n, SHA256: hex.EncodeToString(h.Sum(nil)), Exec: info.Mode()&0o100 != 0}, err
}
