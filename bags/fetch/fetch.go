package fetch

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"sync"
	"time"

	"bagpipe/bags"
	"bagpipe/bags/archive"
	"bagpipe/bags/files"
	"bagpipe/layout"
	"bagpipe/layout/disk"

	"golang.org/x/sync/errgroup"
)

// How a bag with holes is completed. The rules are:
//
//   - nothing is fetched from a host or folder that is not listed, redirections
//     included; fetch.txt comes from whoever made the bag;
//   - a file arrives under another name in .bagpipe-fetch, is compared with its
//     length and every digest the manifests have, synced, and only then renamed to
//     its place; what is there already is not fetched and not replaced;
//   - a part that was left by an interrupted call is gone on with where the server
//     can, and started anew where the digest then says that it was another file;
//   - some room on the file system stays free, give or take roomEvery: a length in
//     fetch.txt may be "-", and a server may send without end;
//   - a file that cannot be had does not keep the others from being fetched.

// Dir is the folder, inside a bag, of files that are not whole yet.
const Dir = ".bagpipe-fetch"

// Allowed lists where files may be fetched from. The zero value allows nothing.
type Allowed struct {
	// Hosts of http and https URLs: "example.org" at its scheme's own port,
	// "example.org:8080", "*.example.org" for every host below it.
	Hosts []string
	// Folders of file URLs. Links that lead out of them are not followed.
	Folders []string
}

// Options say how to complete a bag.
type Options struct {
	Allowed  Allowed
	Limits   archive.Limits    // FileBytes bounds one file
	Free     int64             // bytes that stay free on the bag's file system; default 64 MiB
	Parallel int               // files at once; default 4
	Client   http.RoundTripper // default: the standard transport, with time-outs
	Stall    time.Duration     // without a byte for this long, a transfer is given up; default 1m
	Pause    time.Duration     // before a second try, doubled before a third; default 1s
	Progress func(files.Progress)
}

// Fetched says what Fetch did.
type Fetched struct {
	Files   int64     `json:"files"`
	Bytes   int64     `json:"bytes"`
	Resumed int64     `json:"resumed"` // of Files, those that went on from a part
	There   int64     `json:"there"`   // listed in fetch.txt, and there already
	Failed  []Problem `json:"failed"`

	Recovered bags.Outcome `json:"recovered,omitempty"` // of a change of the bag that was interrupted before
}

// A Problem is a file that could not be fetched.
type Problem struct {
	Path string `json:"path"` // percent-encoded
	URL  string `json:"url"`
	Text string `json:"text"`
}

const (
	fetchParallel = 4
	fetchTries    = 3
	fetchStall    = time.Minute
	fetchPause    = time.Second
	fetchFree     = 64 << 20
	roomEvery     = 8 << 20 // bytes between two looks at the room, of all files together
)

// Complete gets the files that fetch.txt lists and that are not there. fetch.txt stays:
// RFC 8493 lets a complete bag have one, and a tag manifest may list it.
func Complete(ctx context.Context, dir string, o Options) (_ Fetched, err error) {
	h, err := bags.OpenHoles(ctx, dir)
	fail := func(err error) (Fetched, error) {
		return Fetched{Recovered: h.Recovered}, fmt.Errorf("complete bag %s: %w", dir, err)
	}
	if err != nil {
		return fail(err)
	}
	defer func() { err = h.Close(err) }()
	f, err := newFetcher(h, o)
	if err != nil {
		return fail(err)
	}
	if err := f.all(ctx); err != nil {
		return fail(err)
	}
	f.did.Recovered = h.Recovered
	return f.did, nil
}

// fetcher completes one bag.
type fetcher struct {
	o      Options
	bag    *bags.Holes
	client *http.Client
	stall  time.Duration
	pause  time.Duration

	mu    sync.Mutex // guards the rest
	did   Fetched
	so    files.Progress
	asked int64           // bytes since the room was looked at
	begun map[string]bool // parts of files that could not be had: the next call goes on with them
}

func newFetcher(h *bags.Holes, o Options) (*fetcher, error) {
	f := &fetcher{o: o, bag: h, begun: map[string]bool{}, asked: roomEvery}
	f.o.Limits = o.Limits.WithDefaults()
	f.did.Failed = []Problem{}
	f.stall, f.pause = cmp.Or(max(o.Stall, 0), fetchStall), cmp.Or(max(o.Pause, 0), fetchPause)
	f.o.Free = cmp.Or(max(o.Free, 0), fetchFree)
	f.o.Parallel = cmp.Or(max(o.Parallel, 0), fetchParallel)
	transport := o.Client
	if transport == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.ResponseHeaderTimeout = f.stall
		t.DisableCompression = true // the length and the digests are of the bytes as sent
		transport = t
	}
	f.client = &http.Client{Transport: transport, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if len(via) >= 10 {
			return errors.New("more than 10 redirections")
		}
		return f.o.Allowed.host(r.URL)
	}}
	if err := h.Root.Mkdir(Dir, files.FolderPerm); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return f, nil
}

func (f *fetcher) all(ctx context.Context) error {
	f.did.There = f.bag.There
	f.so.TotalFiles = int64(len(f.bag.Missing))
	for _, l := range f.bag.Missing {
		f.so.TotalBytes += max(l.Length, 0)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(f.o.Parallel)
	for _, l := range f.bag.Missing {
		g.Go(func() error { return f.one(ctx, l) })
	}
	err := g.Wait()
	f.client.CloseIdleConnections()
	if err != nil {
		return err
	}
	return f.sweepParts()
}

// machineError is one that no further file would escape.
type machineError struct{ error }

func (e machineError) Unwrap() error { return e.error }

// one fetches a file, in several tries. A fault of the file or its server
// is noted; an error is about the machine or ctx.
func (f *fetcher) one(ctx context.Context, l bags.Hole) error {
	var err error
	pause := f.pause
	for try := range fetchTries {
		if try > 0 {
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				return ctx.Err()
			}
			pause *= 2
		}
		var again bool
		again, err = f.try(ctx, l)
		if err == nil || !again {
			break
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var machine machineError
	if errors.As(err, &machine) {
		return fmt.Errorf("%s: %w", layout.EncodePath(l.Path), machine.error)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		f.begun[path.Base(partOf(l.Path))] = true
		f.did.Failed = append(f.did.Failed, Problem{Path: layout.EncodePath(l.Path), URL: l.Url, Text: err.Error()})
		return nil
	}
	f.did.Files++
	f.so.Files++
	f.report()
	return nil
}

// try goes through one transfer to the file in its place. again reports whether
// another try may help.
func (f *fetcher) try(ctx context.Context, l bags.Hole) (again bool, err error) {
	part := partOf(l.Path)
	out, err := f.openPart(part)
	if err != nil {
		return false, machineError{err}
	}
	had, err := out.Seek(0, io.SeekEnd)
	if err != nil {
		return false, machineError{errors.Join(err, out.Close())}
	}
	if l.Length >= 0 && had > l.Length {
		had = 0
	}
	if err := f.room(l.Length - had); err != nil { // a length that is not true keeps no other file away
		return false, errors.Join(err, out.Close())
	}
	n, again, err := f.transfer(ctx, l, out, had)
	if err == nil {
		err = f.keep(out, n, l)
	}
	if cerr := out.Close(); cerr != nil {
		err = errors.Join(err, machineError{cerr})
	}
	if err != nil {
		return again, err
	}
	if err := f.verify(ctx, l, part); err != nil {
		// A file that went on from another file's part is begun anew.
		return had > 0, errors.Join(err, f.bag.Root.Remove(part))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.did.Bytes += n
	if had > 0 {
		f.did.Resumed++
	}
	return false, f.publish(part, l.Path)
}

// keep cuts what an earlier transfer left behind the end, and syncs.
func (f *fetcher) keep(out *os.File, n int64, l bags.Hole) error {
	if l.Length >= 0 && n != l.Length {
		return fmt.Errorf("%d bytes came, where fetch.txt says %d", n, l.Length)
	}
	if err := out.Truncate(n); err != nil {
		return machineError{err}
	}
	if err := out.Sync(); err != nil {
		return machineError{err}
	}
	return nil
}

// verify compares the whole file with every digest that is known of it.
func (f *fetcher) verify(ctx context.Context, l bags.Hole, part string) error {
	known := l.Sums.Algorithms()
	if len(known) == 0 {
		return errors.New("no digest of an algorithm that can be computed is known")
	}
	one := &files.Tree{Dir: f.bag.Dir, Files: []files.Entry{{Path: part}}}
	return files.Hash(ctx, one, known, files.HashOptions{Workers: 1}, func(h files.Hashed) error {
		for _, a := range known {
			if got, want := h.Sums.Of(a), l.Sums.Of(a); !bytes.Equal(got, want) {
				return fmt.Errorf("what came is another file: %s is %s…, the manifest has %s…", a, files.Short(got), files.Short(want))
			}
		}
		return nil
	})
}

// publish gives the verified file its name. A crash before leaves the part, after
// it the file.
func (f *fetcher) publish(part, p string) error {
	if err := f.bag.Root.MkdirAll(path.Dir(p), files.FolderPerm); err != nil {
		return machineError{err}
	}
	if err := f.bag.Root.Link(part, p); err != nil && !files.CannotLink(err) {
		return machineError{err} // also where a file has appeared there
	} else if err == nil {
		if err := f.bag.Root.Remove(part); err != nil {
			return machineError{err}
		}
	} else if err := f.bag.Root.Rename(part, p); err != nil {
		return machineError{err}
	}
	d, err := f.bag.Root.Open(path.Dir(p))
	if err != nil {
		return machineError{err}
	}
	if err := errors.Join(d.Sync(), d.Close(), disk.SyncDir(f.bag.Dir)); err != nil {
		return machineError{err}
	}
	return nil
}

func (f *fetcher) report() {
	if f.o.Progress != nil {
		f.o.Progress(f.so)
	}
}

func (f *fetcher) count(n int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.so.Bytes += n
	f.report()
}
