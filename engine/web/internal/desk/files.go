package desk

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"bagpipe/engine/fault"
	"bagpipe/engine/folder"
	"bagpipe/engine/remote/wire"
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
	missing := fault.New(fault.NotFound, fmt.Sprintf("item %s has no file %s", id.Short(), name))
	f, ok, err := d.Ask.File(ctx, id, name)
	if err == nil && !ok {
		err = missing
	}
	if err != nil {
		return nil, 0, err
	}
	at, err := layout.DecodePath(name)
	if err != nil {
		return nil, 0, missing
	}
	if m, err := d.Ask.Manifest(id); err == nil && d.Folders.InPlace(m) { // a retired item has none
		file, err := d.Folders.OpenInPlace(ctx, m, at)
		return file, f.Size, err
	}
	root, err := openContent(filepath.Join(d.Root, filepath.FromSlash(layout.ItemDir(id))))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, missing
	}
	if err != nil {
		return nil, 0, err
	}
	defer root.Close()
	file, err := root.Open(filepath.FromSlash(at))
	if err != nil {
		return nil, 0, fault.New(fault.NotFound, fmt.Sprintf("%s of item %s is not there any more", name, id.Short()))
	}
	return file, f.Size, nil
}

// ResultFiles lists what an item is now and what its robots made beside it: the files below
// content/, or source/ where nothing was made of that, and derived/.
func (d *Desk) ResultFiles(ctx context.Context, id layout.ItemID) (files []wire.File, err error) {
	root, err := os.OpenRoot(filepath.Join(d.Root, filepath.FromSlash(layout.ItemDir(id))))
	if errors.Is(err, fs.ErrNotExist) {
		return []wire.File{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer root.Close()
	files = []wire.File{}
	tops := []string{layout.ContentDir, layout.DerivedDir}
	if _, err := root.Stat(layout.ContentDir); errors.Is(err, fs.ErrNotExist) {
		tops[0] = layout.SourceDir
	}
	for _, top := range tops {
		err := fs.WalkDir(root.FS(), top, func(p string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return err
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			f, err := summed(root, p)
			files = append(files, f)
			return err
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return files, nil
}

func summed(root *os.Root, p string) (out wire.File, err error) {
	f, err := root.Open(p)
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
	return wire.File{Path: layout.EncodePath(p), Size: n, SHA256: hex.EncodeToString(h.Sum(nil)), Exec: info.Mode()&0o100 != 0}, err
}

// SendResult sends a file that ResultFiles lists, or the range of it that is asked for.
func (d *Desk) SendResult(w http.ResponseWriter, r *http.Request, id layout.ItemID, name string) error {
	missing := fault.New(fault.NotFound, fmt.Sprintf("item %s has no file %s", id.Short(), name))
	p, err := layout.DecodePath(name)
	if err != nil {
		return missing
	}
	rel, err := layout.ParseRelPath(p)
	top, _, _ := strings.Cut(string(rel), "/")
	if err != nil || top != layout.ContentDir && top != layout.SourceDir && top != layout.DerivedDir {
		return missing
	}
	root, err := os.OpenRoot(filepath.Join(d.Root, filepath.FromSlash(layout.ItemDir(id))))
	if err != nil {
		return missing
	}
	defer root.Close()
	f, err := root.Open(string(rel))
	if err != nil {
		return missing
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return missing
	}
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": path.Base(name)}))
	Patient(w)
	http.ServeContent(w, r, "", time.Time{}, f)
	return nil
}

// openContent opens the folder of an item's content, which stands in the drop until a step made
// another; no link leads out of the item.
func openContent(dir string) (*os.Root, error) {
	item, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer item.Close()
	below, err := filepath.Rel(dir, folder.ContentOf(dir))
	if err != nil {
		return nil, err
	}
	return item.OpenRoot(below)
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
