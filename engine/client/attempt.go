package client

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"bagpipe/engine/remote/wire"
)

// Attempt is one that this program has.
type Attempt struct {
	wire.Given
	c    *Client
	path string
	note chan struct{} // there is something to be told

	mu      sync.Mutex // guards the rest
	text    string
	percent int
	message string
	result  map[string]any
}

// Progress tells how far the robot has come; percent is -1 where that is not known.
func (a *Attempt) Progress(note string, percent int) {
	a.mu.Lock()
	a.text, a.percent = note, percent
	a.mu.Unlock()
	select {
	case a.note <- struct{}{}:
	default:
	}
}

// Done says what is recorded of a step that ends well: a line for people, and a result as a
// program's result.json has it (metadata, milestones, outputs, children, …).
func (a *Attempt) Done(message string, result map[string]any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.message, a.result = message, result
}

// Fetch writes a file of the item, as Files lists it, and verifies it.
func (a *Attempt) Fetch(ctx context.Context, f wire.File, to io.Writer) error {
	res, err := a.c.do(ctx, http.MethodGet, a.path+"/files/"+escaped(f.Path), nil, http.Header{})
	if err != nil {
		return fmt.Errorf("fetch %s: %w", f.Path, err)
	}
	defer res.Body.Close()
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(to, sum), res.Body); err != nil {
		return fmt.Errorf("fetch %s: %w", f.Path, err)
	}
	if hex.EncodeToString(sum.Sum(nil)) != f.SHA256 {
		return fmt.Errorf("fetch %s: other bytes came than those of the file", f.Path)
	}
	return nil
}

// partSize is how much is sent at once.
const partSize = 8 << 20

// Make sends a file that the robot made, in parts; a part that is cut off is sent again. What
// lies below derived/ is published.
func (a *Attempt) Make(ctx context.Context, path string, from io.Reader) error {
	part := make([]byte, partSize)
	for offset := int64(0); ; {
		n, err := io.ReadFull(from, part)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return err
		}
		if n > 0 || offset == 0 {
			if err := a.part(ctx, path, offset, part[:n]); err != nil {
				return fmt.Errorf("send %s: %w", path, err)
			}
		}
		if offset += int64(n); n < partSize {
			return nil
		}
	}
}

func (a *Attempt) part(ctx context.Context, path string, offset int64, data []byte) error {
	return lost(a.c.part(ctx, a.path+"/made/"+escaped(path), offset, data))
}

// part sends a part of a file, until it is there.
func (c *Client) part(ctx context.Context, at string, offset int64, data []byte) error {
	header := http.Header{"Content-Digest": {wire.ContentDigestOf(data)}, "Content-Type": {"application/octet-stream"}}
	return lasting(ctx, func() error {
		res, err := c.do(ctx, http.MethodPut, at+"?offset="+strconv.FormatInt(offset, 10), bytes.NewReader(data), header.Clone())
		if err != nil {
			return err
		}
		return res.Body.Close()
	})
}

// keep beats every third of the lease, and when there is something to tell, until ctx ends; it
// ends the robot of an attempt that is lost.
func (a *Attempt) keep(ctx context.Context, one wire.Leased, lose context.CancelCauseFunc) {
	tick := time.NewTicker(max(time.Duration(one.Seconds*float64(time.Second))/3, 50*time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-a.note:
		}
		a.mu.Lock()
		beat := map[string]any{"note": a.text}
		if a.percent >= 0 {
			beat["percent"] = a.percent
		}
		a.mu.Unlock()
		if err := a.c.call(ctx, http.MethodPut, a.path, beat, nil); is(err, http.StatusConflict) {
			lose(ErrLost)
			return
		}
	}
}

// endOf words how the robot ended.
func (a *Attempt) endOf(err error) wire.Ended {
	a.mu.Lock()
	defer a.mu.Unlock()
	var f *Failure
	switch {
	case errors.As(err, &f):
		return wire.Ended{Exit: f.Exit, Message: f.Message}
	case err != nil:
		return wire.Ended{Exit: 1, Message: err.Error()}
	}
	e := wire.Ended{Message: a.message}
	if a.result != nil {
		if e.Result, err = json.Marshal(a.result); err != nil {
			return wire.Ended{Exit: 1, Message: "the robot's result: " + err.Error()}
		}
	}
	return e
}
