package desk

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path"
	"sync"
	"time"

	"bagpipe/engine/fault"
	"bagpipe/layout"
	"bagpipe/steps/decoder"
	"bagpipe/steps/describe"
	"bagpipe/steps/views"
)

// Pictures draws small pictures of what was dropped, in a process of its own whose memory and time
// are limited. One is drawn at a time; its lock guards the process and the pictures drawn last.
type Pictures struct {
	mu   sync.Mutex
	work *decoder.Worker
	kept map[string]picture // by item, version and path
}

// picture is a JPEG, or why there is none.
type picture struct {
	jpeg    []byte
	refused string
}

// Pictured reports whether a file of that name can be drawn.
func Pictured(name string) bool {
	kind := describe.KindOf(name)
	return kind == describe.Image || kind == describe.Raster
}

// Close ends the process.
func (p *Pictures) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.work != nil {
		p.work.Close()
		p.work = nil
	}
}

const mostKept = 200

func (p *Pictures) draw(ctx context.Context, key, name string, f *os.File) (picture, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if found, ok := p.kept[key]; ok {
		return found, nil
	}
	if p.work == nil {
		const memory, patience = 512 << 20, 20 * time.Second
		p.work = decoder.New(decoder.Options{Work: "views", Memory: memory, Time: patience})
	}
	// The process opens what was opened here, wherever its path leads by then.
	var drawn views.Answer
	err := p.work.Ask(ctx, views.Request{Path: fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), f.Fd()), Name: name}, &drawn)
	var refused *decoder.Refused
	switch {
	case errors.As(err, &refused):
		drawn.Browse = nil
	case err != nil:
		return picture{}, err
	}
	if len(p.kept) >= mostKept || p.kept == nil {
		p.kept = map[string]picture{}
	}
	found := picture{jpeg: drawn.Browse}
	if refused != nil {
		found.refused = refused.Reason
	}
	p.kept[key] = found
	return found, nil
}

// SendPicture sends a small picture of a file, drawn anew from its content: no byte of the file is
// sent.
func (d *Desk) SendPicture(w http.ResponseWriter, r *http.Request, id layout.ItemID, name string) error {
	f, _, err := d.OpenFile(r.Context(), id, name)
	if err != nil {
		return err
	}
	defer f.Close()
	if !Pictured(path.Base(name)) {
		return fault.New(fault.NotFound, name+" is of no kind that is drawn")
	}
	stamp, err := d.Ask.Stamp(id)
	if err != nil {
		return err
	}
	p, err := d.Pictures.draw(r.Context(), stamp+"\x00"+name, path.Base(name), f)
	if err != nil {
		return err
	}
	if p.refused != "" {
		return fault.New(fault.Refused, name+" cannot be drawn: "+p.refused)
	}
	w.Header().Set("Content-Type", "image/jpeg")
	w.Header().Set("Content-Security-Policy", "sandbox; default-src 'none'")
	_, _ = w.Write(p.jpeg) // who asked is gone
	return nil
}
