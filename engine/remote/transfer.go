package remote

import (
	"archive/tar"
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"bagpipe/engine/attempt"
	"bagpipe/engine/remote/wire"
	"bagpipe/layout"
	"bagpipe/layout/disk"
)

// The rules are: a request names an attempt in its path and its nonce as the bearer's token.
// One that is not the current attempt is answered 410, so that its robot is ended. What is
// read lies below the item's folder, what is written below the attempt's scratch folder, both
// opened as roots: no path leads out of them, and no link is followed out. A part is written
// at the offset that the file has, and at no other, so that a transfer goes on where it ended.
// Nothing counts before End has verified it.

// transfer answers workers over HTTPS.
type transfer struct{ *Remote }

// Handler answers workers over HTTPS.
func (r *Remote) Handler() http.Handler { return transfer{r}.handler() }

func (r transfer) handler() http.Handler {
	mux := http.NewServeMux()
	const at = "/attempts/{item}/{workflow}/{step}/{attempt}/"
	mux.HandleFunc("GET "+at+"call", r.fenced(r.serveCall))
	mux.HandleFunc("GET "+at+"file", r.fenced(r.serveFile))
	mux.HandleFunc("POST "+at+"bundle", r.fenced(r.serveBundle))
	mux.HandleFunc("HEAD "+at+"made", r.fenced(r.madeSize))
	mux.HandleFunc("PUT "+at+"made", r.fenced(r.takePart))
	mux.HandleFunc("POST "+at+"end", r.fenced(r.takeEnd))
	return mux
}

// mostPart bounds one part of a file; a part that is cut off is lost up to what came.
const mostPart = 16 << 20

// fenced lets a request through that names a loan and has its nonce.
func (r transfer) fenced(next func(http.ResponseWriter, *http.Request, *loan)) http.HandlerFunc {
	return func(w http.ResponseWriter, q *http.Request) {
		held := wire.Held{Item: layout.ItemID(q.PathValue("item")), Workflow: q.PathValue("workflow"),
			Step: layout.Name(q.PathValue("step")), Attempt: q.PathValue("attempt")}
		held.Nonce, _ = strings.CutPrefix(q.Header.Get("Authorization"), "Bearer ")
		l, no := r.current(held, strings.HasSuffix(q.URL.Path, "/end"))
		switch {
		case no.Code == http.StatusNoContent:
			w.WriteHeader(no.Code)
		case no.Code != 0:
			problem(w, no.Code, no.Text)
		default:
			next(w, q, l)
		}
	}
}

// current finds the loan that a worker names. ending is one who tells its end; no with a code is the answer where there is no
// such loan.
func (r transfer) current(held wire.Held, ending bool) (l *loan, no wire.Taken) {
	ref, err := held.Ref()
	if err != nil {
		r.refused("")
		return nil, taken(http.StatusBadRequest, err.Error())
	}
	r.mu.Lock()
	l, done := r.loans[ref], r.ended[ref]
	r.mu.Unlock()
	switch {
	case ending && done != "" && done == held.Nonce:
		return nil, taken(http.StatusNoContent, "") // the answer was lost on its way
	case l == nil || l.held.Nonce != held.Nonce:
		r.refusedOf(ref.Key.Engine)
		return nil, taken(http.StatusGone, "this attempt is not the current one")
	}
	return l, no
}

func taken(code int, text string, want ...string) wire.Taken {
	return wire.Taken{Problem: wire.Problem{Head: wire.Now(), Text: text, Want: want}, Code: code}
}

func problem(w http.ResponseWriter, code int, text string, want ...string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(wire.Problem{Head: wire.Now(), Text: text, Want: want}) // whoever asked may be gone
}

// serveCall gives what the robot is given. An error in preparing it ends the attempt.
func (r transfer) serveCall(w http.ResponseWriter, q *http.Request, l *loan) {
	call, err := r.given(q.Context(), l, false)
	if err != nil && q.Context().Err() != nil {
		return
	}
	if err != nil {
		problem(w, http.StatusGone, err.Error())
		return
	}
	data, err := wire.EncodeDocument(call)
	if err != nil {
		problem(w, http.StatusInternalServerError, err.Error())
		return
	}
	_, _ = w.Write(data)
}

// itemRoot opens the item's folder.
func (r transfer) itemRoot(l *loan) (*os.Root, error) {
	if trial, is := l.work.(*attempt.Rehearsal); is {
		return os.OpenRoot(trial.Item())
	}
	return os.OpenRoot(filepath.Join(r.place.Root, filepath.FromSlash(layout.ItemDir(l.ref.Item))))
}

// sendablePath reads a path that may be sent: below source, content or derived.
func sendablePath(encoded string) (string, error) {
	p, err := layout.DecodePath(encoded)
	if err != nil {
		return "", err
	}
	rel, err := layout.ParseRelPath(p)
	if err != nil {
		return "", err
	}
	switch top, _, _ := strings.Cut(string(rel), "/"); top {
	case layout.SourceDir, layout.ContentDir, layout.DerivedDir:
		return string(rel), nil
	}
	return "", fmt.Errorf("%s is not sent", encoded)
}

// serveFile sends a file, or the range of it that is asked for.
func (r transfer) serveFile(w http.ResponseWriter, q *http.Request, l *loan) {
	rel, err := sendablePath(q.URL.Query().Get("p"))
	if err != nil {
		problem(w, http.StatusBadRequest, err.Error())
		return
	}
	root, err := r.itemRoot(l)
	if err != nil {
		problem(w, http.StatusNotFound, err.Error())
		return
	}
	defer root.Close()
	f, info, err := openPlain(root, rel)
	if err != nil {
		problem(w, http.StatusNotFound, err.Error())
		return
	}
	defer f.Close()
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(w, q, "", info.ModTime(), f)
}

func openPlain(root *os.Root, rel string) (*os.File, fs.FileInfo, error) {
	f, err := root.Open(rel)
	if err != nil {
		return nil, nil, err
	}
	info, err := plain(f, rel)
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}

// plain looks at an open file, which must be a regular one.
func plain(f *os.File, rel string) (fs.FileInfo, error) {
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no file", layout.EncodePath(rel))
	}
	return info, err
}

// serveBundle sends many small files as one tar stream.
func (r transfer) serveBundle(w http.ResponseWriter, q *http.Request, l *loan) {
	var paths []string
	if err := json.NewDecoder(http.MaxBytesReader(w, q.Body, wire.MaxDocument)).Decode(&paths); err != nil {
		problem(w, http.StatusBadRequest, err.Error())
		return
	}
	root, err := r.itemRoot(l)
	if err != nil {
		problem(w, http.StatusNotFound, err.Error())
		return
	}
	defer root.Close()
	w.Header().Set("Content-Type", "application/x-tar")
	wide := bufio.NewWriterSize(w, bundleBuffer)
	out, folders := tar.NewWriter(wide), disk.Below(root)
	defer folders.Close()
	for _, p := range paths {
		if err := bundle(out, folders, p); err != nil { // a stream that is cut off; the worker asks again
			r.rooms.Log.Warn("send a bundle", "item", l.ref.Item, "file", p, "err", err)
			return
		}
	}
	_ = errors.Join(out.Close(), wide.Flush()) // the worker sees where the stream ends
}

// bundleBuffer is how many bytes of small files are sent together.
const bundleBuffer = 256 << 10

func bundle(out *tar.Writer, folders *disk.Folders, encoded string) error {
	rel, err := sendablePath(encoded)
	if err != nil {
		return err
	}
	f, err := folders.OpenFile(rel, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := plain(f, rel)
	if err != nil {
		return err
	}
	if err := out.WriteHeader(&tar.Header{Name: encoded, Size: info.Size(), Mode: 0o600, Typeflag: tar.TypeReg, Format: tar.FormatPAX}); err != nil {
		return err
	}
	_, err = io.CopyN(out, f, info.Size())
	return err
}

// made reads which file below scratch a request is about.
func made(q *http.Request) (string, error) {
	p, err := layout.DecodePath(q.URL.Query().Get("p"))
	if err != nil {
		return "", err
	}
	rel, err := layout.ParseRelPath(p)
	return string(rel), err
}

// madeSize tells how much of a file is here.
func (r transfer) madeSize(w http.ResponseWriter, q *http.Request, l *loan) {
	size := int64(0)
	if rel, err := made(q); err == nil {
		if root, err := os.OpenRoot(l.work.Scratch()); err == nil {
			defer root.Close()
			if info, err := root.Lstat(rel); err == nil && info.Mode().IsRegular() {
				size = info.Size()
			}
		}
	}
	w.Header().Set("Bagpipe-Size", strconv.FormatInt(size, 10))
}

// takePart appends a part to a file below scratch. offset 0 begins the file anew.
func (r transfer) takePart(w http.ResponseWriter, q *http.Request, l *loan) {
	rel, err := made(q)
	if err != nil {
		gate(r).suspend(l.worker, "it sends a file that leads out of its attempt's folder: "+err.Error())
	}
	offset, err2 := strconv.ParseInt(q.URL.Query().Get("offset"), 10, 64)
	if err := errors.Join(err, err2); err != nil {
		problem(w, http.StatusBadRequest, err.Error())
		return
	}
	if why := r.rooms.Room(); why != nil {
		w.Header().Set("Retry-After", "5")
		problem(w, http.StatusInsufficientStorage, why.Error())
		return
	}
	root, err := os.OpenRoot(l.work.Scratch())
	if err != nil {
		problem(w, http.StatusGone, err.Error())
		return
	}
	defer root.Close()
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(partTime))
	code, err := appendPart(&r.table, l, root, rel, offset, http.MaxBytesReader(w, q.Body, mostPart))
	if err != nil {
		problem(w, code, err.Error())
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// partTime bounds one part of a slow link.
const partTime = 10 * time.Minute

// appendPart writes a part of a file of a loan, unless that is being ended.
func appendPart(t *table, l *loan, root *os.Root, rel string, offset int64, body io.Reader) (code int, err error) {
	var f *os.File
	err = t.writing(l, func() (err error) {
		f, err = openAt(root, rel, offset)
		return err
	})
	if err != nil {
		return http.StatusConflict, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err = io.Copy(part{t, l, f}, body); errors.Is(err, errEnding) {
		return http.StatusConflict, err
	}
	return http.StatusBadRequest, err
}

// openAt opens a file below scratch at its end, which must be at offset; 0 begins it anew.
func openAt(root *os.Root, rel string, offset int64) (*os.File, error) {
	if dir := filepath.Dir(rel); dir != "." {
		if err := root.MkdirAll(dir, 0o777); err != nil {
			return nil, err
		}
	}
	flags := os.O_WRONLY | os.O_CREATE
	if offset == 0 {
		flags |= os.O_TRUNC
	}
	f, err := root.OpenFile(rel, flags, 0o666)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && (!info.Mode().IsRegular() || info.Size() != offset) {
		err = fmt.Errorf("%d bytes of %s are here, not %d", info.Size(), layout.EncodePath(rel), offset)
	}
	if err == nil {
		_, err = f.Seek(offset, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
