package desk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"time"

	"bagpipe/engine/fault"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// Patient lets an answer take as long as its reader does, within an hour.
func Patient(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Hour)) // a writer of tests has none
}

// SendFile sends a file of an item as it is: as something to keep, never to show. Only paths
// that the inventory lists are opened, and no link leads out of the item's content.
func (d *Desk) SendFile(w http.ResponseWriter, r *http.Request, id layout.ItemID, name string) error {
	f, size, err := d.OpenFile(r.Context(), id, name)
	if err != nil {
		return err
	}
	defer f.Close()
	d.Log.Info("download", "item", string(id), "file", name, "bytes", size, "name", Who(r.Context()).Name, "from", r.RemoteAddr)
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": path.Base(name)}))
	Patient(w)
	http.ServeContent(w, r, "", time.Time{}, f)
	return nil
}

// OpenFile opens a listed file of an item; the caller closes it.
func (d *Desk) OpenFile(ctx context.Context, id layout.ItemID, name string) (*os.File, int64, error) {
	detail, err := d.Ask.Show(ctx, id)
	if err != nil {
		return nil, 0, err
	}
	missing := fault.New(fault.NotFound, fmt.Sprintf("item %s has no file %s", id.Short(), name))
	for _, f := range detail.Files {
		if f.Path != name {
			continue
		}
		root, err := os.OpenRoot(filepath.Join(d.Root, filepath.FromSlash(detail.Dir), layout.ContentDir))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, 0, missing
		}
		if err != nil {
			return nil, 0, err
		}
		defer root.Close()
		at, err := layout.DecodePath(name)
		if err != nil {
			return nil, 0, missing
		}
		file, err := root.Open(filepath.FromSlash(at))
		if err != nil {
			return nil, 0, fault.New(fault.NotFound, fmt.Sprintf("%s of item %s is not there any more", name, id.Short()))
		}
		return file, f.Size, nil
	}
	return nil, 0, missing
}

// attemptLog finds an attempt's log; running reports whether more may come.
func (d *Desk) attemptLog(ctx context.Context, id layout.ItemID, step, attempt string) (dir, log string, running bool, err error) {
	detail, err := d.Ask.Show(ctx, id)
	if err != nil {
		return "", "", false, err
	}
	for _, run := range detail.Workflows {
		for _, s := range run.Steps {
			for _, a := range s.Attempts {
				if string(s.Step) == step && a.Attempt == attempt && a.Log != "" {
					return detail.Dir, a.Log, a.State == state.InProgress && !a.Lost, nil
				}
			}
		}
	}
	return "", "", false, fault.New(fault.NotFound, fmt.Sprintf("item %s has no log of attempt %s at %s", id.Short(), attempt, step))
}

// OpenLog opens what an attempt wrote, and reports whether it still runs; the caller closes
// the file.
func (d *Desk) OpenLog(ctx context.Context, id layout.ItemID, step, attempt string) (f *os.File, running bool, err error) {
	dir, log, running, err := d.attemptLog(ctx, id, step, attempt)
	if err != nil {
		return nil, false, err
	}
	root, err := os.OpenRoot(filepath.Join(d.Root, filepath.FromSlash(dir)))
	if err != nil {
		return nil, false, err
	}
	defer root.Close()
	f, err = root.Open(layout.LogsDir + "/" + path.Base(log))
	return f, running, err
}

// SendLog sends all that an attempt wrote, as text; to follow it, also what it writes until it
// ends.
func (d *Desk) SendLog(w http.ResponseWriter, r *http.Request, id layout.ItemID, step, attempt string, follow bool) error {
	f, running, err := d.OpenLog(r.Context(), id, step, attempt)
	if err != nil {
		return err
	}
	defer f.Close()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "sandbox; default-src 'none'")
	Patient(w)
	if _, err := io.Copy(w, f); err != nil || !follow {
		return nil // who asked is gone, or has all
	}
	const look = 300 * time.Millisecond
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		if err := http.NewResponseController(w).Flush(); err != nil {
			return nil
		}
		if !running {
			return nil
		}
		select {
		case <-r.Context().Done():
			return nil
		case <-tick.C:
		}
		// What is written before the end is committed is read after that was seen.
		_, _, running, err = d.attemptLog(r.Context(), id, step, attempt)
		if err != nil {
			return nil
		}
		Patient(w)
		if _, err := io.Copy(w, f); err != nil {
			return nil
		}
	}
}
