package worker

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync"

	"bagpipe/engine/remote/wire"
	"bagpipe/layout"
	"bagpipe/layout/disk"
	"bagpipe/steps"
)

const (
	// smallFile is the size up to which files are fetched together.
	smallFile = 64 << 10
	// bundleFiles and bundleBytes bound what is fetched together.
	bundleFiles, bundleBytes = 2000, 32 << 20
)

// fetch makes the item's folder: the records, the folders, and the files, each verified.
func (e *errand) fetch(ctx context.Context, call wire.Call, item, scratch string) error {
	for _, dir := range []string{item, scratch} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	for name, data := range map[string][]byte{layout.ManifestJSON: call.Manifest, layout.InventoryJSON: call.Inventory, layout.ExecutionJSON: call.Execution} {
		if data == nil {
			continue
		}
		if err := os.WriteFile(filepath.Join(item, name), data, 0o600); err != nil {
			return err
		}
	}
	root, err := os.OpenRoot(item)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, dir := range call.Folders {
		rel, err := decoded(dir)
		if err != nil {
			return err
		}
		if err := root.MkdirAll(rel, 0o700); err != nil {
			return err
		}
	}
	var small, large, same []wire.File
	first := map[string]wire.File{} // by digest: what is in several files is fetched once
	for _, f := range call.Files {
		if _, known := first[f.SHA256]; known && f.Size > 0 {
			same = append(same, f)
			continue
		}
		first[f.SHA256] = f
		switch {
		case (f.Data != nil || f.Size == 0) && e.unload(root, f) == nil:
		case e.w.cache.give(root, f):
		case f.Size <= smallFile:
			small = append(small, f)
		default:
			large = append(large, f)
		}
	}
	if err := e.fetchSmall(ctx, root, small); err != nil {
		return err
	}
	for _, f := range large {
		if err := e.fetchLarge(ctx, root, f); err != nil {
			return err
		}
	}
	for _, f := range same {
		if err := e.copyOf(ctx, root, first[f.SHA256], f); err != nil {
			return err
		}
	}
	return nil
}

// unload writes a file whose bytes came with the call.
func (e *errand) unload(root *os.Root, f wire.File) error {
	folders := disk.Below(root)
	defer folders.Close()
	return e.putSmall(root, folders, arrived{f, f.Data})
}

// copyOf makes a file of another that is the same, or fetches it where that does not do.
func (e *errand) copyOf(ctx context.Context, root *os.Root, from, f wire.File) error {
	rel, err := decoded(from.Path)
	if err != nil {
		return err
	}
	in, err := root.Open(rel)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := e.put(root, f, in, 0); err == nil || isFull(err) {
		return err
	}
	return e.fetchLarge(ctx, root, f)
}

func decoded(p string) (string, error) {
	p, err := layout.DecodePath(p)
	if err != nil {
		return "", err
	}
	rel, err := layout.ParseRelPath(p)
	return string(rel), err
}

// fetchSmall fetches files by the bundle. One that does not come as announced is fetched alone.
func (e *errand) fetchSmall(ctx context.Context, root *os.Root, files []wire.File) error {
	for len(files) > 0 {
		n, bytes := 0, int64(0)
		for n < len(files) && n < bundleFiles && (n == 0 || bytes+files[n].Size <= bundleBytes) {
			bytes += files[n].Size
			n++
		}
		left, err := e.fetchBundle(ctx, root, files[:n])
		if errors.Is(err, errGone) || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		for _, f := range left {
			if err := e.fetchLarge(ctx, root, f); err != nil {
				return err
			}
		}
		files = files[n:]
	}
	return nil
}

// fetchBundle answers with the files that did not come.
func (e *errand) fetchBundle(ctx context.Context, root *os.Root, files []wire.File) (left []wire.File, err error) {
	var paths []string
	want := map[string]wire.File{}
	for _, f := range files {
		paths, want[f.Path] = append(paths, f.Path), f
	}
	body, err := json.Marshal(paths)
	if err != nil {
		return files, err
	}
	res, err := e.request(ctx, http.MethodPost, "bundle", bytes.NewReader(body), nil)
	if err != nil {
		return files, err
	}
	defer res.Body.Close()
	err = e.unpack(res.Body, root, want)
	for _, f := range files {
		if _, missing := want[f.Path]; missing {
			left = append(left, f)
		}
	}
	return left, err
}

// unpackers is how many files of a bundle are verified and written side by side.
const unpackers = 2

// arrived is a file of a bundle and its bytes.
type arrived struct {
	wire.File
	data []byte
}

// unpack writes the files of a bundle that are as announced, and takes them off those that are wanted. Only a full disk
// is an error: what has not come is fetched alone.
func (e *errand) unpack(body io.Reader, root *os.Root, want map[string]wire.File) (full error) {
	files, spare := make(chan arrived, unpackers), make(chan []byte, 2*unpackers)
	var mu sync.Mutex // guards want and full meanwhile
	var writing sync.WaitGroup
	for range unpackers {
		writing.Go(func() {
			folders := disk.Below(root)
			defer folders.Close()
			for a := range files {
				err := e.putSmall(root, folders, a)
				mu.Lock()
				if err == nil {
					delete(want, a.Path)
				} else if isFull(err) {
					full = err
				}
				mu.Unlock()
				select {
				case spare <- a.data:
				default:
				}
			}
		})
	}
	defer writing.Wait()
	defer close(files)
	for in := tar.NewReader(bufio.NewReaderSize(body, smallFile)); ; {
		h, err := in.Next()
		if err != nil {
			return nil
		}
		mu.Lock()
		f, ok := want[h.Name]
		stop := full
		mu.Unlock()
		if stop != nil {
			return stop
		}
		if !ok || h.Size != f.Size || f.Size > smallFile {
			continue
		}
		a := arrived{File: f}
		select {
		case a.data = <-spare:
		default:
			a.data = make([]byte, smallFile)
		}
		a.data = a.data[:f.Size]
		if _, err := io.ReadFull(in, a.data); err != nil {
			return nil
		}
		files <- a
	}
}

// putSmall writes a file that is as announced.
func (e *errand) putSmall(root *os.Root, folders *disk.Folders, a arrived) (err error) {
	if sum := sha256.Sum256(a.data); hex.EncodeToString(sum[:]) != a.SHA256 {
		return errDigest
	}
	rel, err := decoded(a.Path)
	if err != nil {
		return err
	}
	out, err := folders.OpenFile(rel, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, modeOf(a.File))
	if err != nil {
		return err
	}
	_, err = out.Write(a.data)
	if err = errors.Join(err, out.Close()); err == nil {
		e.w.cache.keep(root, rel, a.File)
	}
	return err
}

func modeOf(f wire.File) os.FileMode {
	if f.Exec {
		return 0o700
	}
	return 0o600
}

// errDigest says that bytes came which are not those announced.
var errDigest = errors.New("its bytes are not those that were announced")

// fetchLarge fetches one file, from where it was cut off; thrice where its digest is wrong.
func (e *errand) fetchLarge(ctx context.Context, root *os.Root, f wire.File) error {
	rel, err := decoded(f.Path)
	if err != nil {
		return err
	}
	wrong := 0
	return lasting(ctx, func() (bool, error) {
		from := int64(0)
		if info, err := root.Stat(rel); err == nil && info.Size() < f.Size {
			from = info.Size()
		}
		err := e.fetchFrom(ctx, root, f, from)
		var bad *statusError
		switch {
		case err == nil:
			return true, nil
		case isFull(err):
			return true, err
		case errors.As(err, &bad) && bad.code < 500:
			return true, steps.SystemFailure("fetch %s: %w", f.Path, err)
		case errors.Is(err, errDigest):
			if wrong++; wrong >= mostSends {
				return true, steps.SystemFailure("fetch %s, %d times: %w", f.Path, mostSends, err)
			}
			return false, errors.Join(err, root.Remove(rel))
		}
		return false, err
	})
}

func (e *errand) fetchFrom(ctx context.Context, root *os.Root, f wire.File, from int64) error {
	header := http.Header{}
	if from > 0 {
		header.Set("Range", fmt.Sprintf("bytes=%d-", from))
	}
	res, err := e.request(ctx, http.MethodGet, "file?p="+url.QueryEscape(f.Path), nil, header)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusPartialContent {
		from = 0
	}
	return e.put(root, f, res.Body, from)
}

// put writes a file's bytes from an offset on, and verifies the whole.
func (e *errand) put(root *os.Root, f wire.File, in io.Reader, from int64) (err error) {
	rel, err := decoded(f.Path)
	if err != nil {
		return err
	}
	flags := os.O_RDWR | os.O_CREATE
	if from == 0 {
		flags |= os.O_TRUNC
	}
	if err := root.MkdirAll(filepath.Dir(rel), 0o700); err != nil {
		return err
	}
	out, err := root.OpenFile(rel, flags, modeOf(f))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	h := sha256.New()
	if _, err := io.Copy(h, io.LimitReader(out, from)); err != nil {
		return err
	}
	n, err := io.Copy(io.MultiWriter(out, h), io.LimitReader(in, f.Size-from+1))
	if err != nil {
		return err
	}
	if n+from < f.Size {
		return io.ErrUnexpectedEOF // the rest is fetched
	}
	if n+from != f.Size || hex.EncodeToString(h.Sum(nil)) != f.SHA256 {
		return errDigest
	}
	e.w.cache.keep(root, rel, f)
	return nil
}
