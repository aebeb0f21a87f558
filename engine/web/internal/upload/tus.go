package upload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"

	"bagpipe/engine/fault"
	"bagpipe/engine/web/access"
	"bagpipe/engine/web/internal/desk"
	"bagpipe/layout"

	"github.com/tus/tusd/v2/pkg/handler"
	"github.com/tus/tusd/v2/pkg/memorylocker"
	"golang.org/x/exp/slog"
)

// Handler answers tus below an address, which begins with a slash and ends with one. The
// paths of its requests begin after it.
func (u *Uploads) Handler(at string) (http.Handler, error) {
	parts := handler.NewStoreComposer()
	s := store{u}
	parts.UseCore(s)
	parts.UseTerminater(s)
	parts.UseLocker(memorylocker.New())
	tus, err := handler.NewHandler(handler.Config{StoreComposer: parts, BasePath: at, DisableDownload: true, DisableConcatenation: true,
		Cors: &handler.CorsConfig{Disable: true}, NetworkTimeout: pause, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		PreUploadCreateCallback: u.announced, PreFinishResponseCallback: u.finished})
	if err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := u.d.Acts(r.Context(), access.Operator); err != nil && r.Method != http.MethodOptions {
			http.Error(w, u.d.Said(err), desk.Status(err))
			return
		}
		sum, err := sumOf(r.Header.Get("Upload-Checksum"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		tus.ServeHTTP(&telling{ResponseWriter: w, until: u.d.Now().Add(lasts)}, r.WithContext(context.WithValue(r.Context(), sumKey{}, sum)))
	}), nil
}

// telling adds to an answer what tusd does not know: its extensions, when an upload ends, and
// an address that holds also behind a proxy.
type telling struct {
	http.ResponseWriter
	until time.Time
}

// WriteHeader completes the headers.
func (t *telling) WriteHeader(status int) {
	h := t.Header()
	if known := h.Get("Tus-Extension"); known != "" {
		h.Set("Tus-Extension", known+",checksum,expiration")
		h.Set("Tus-Checksum-Algorithm", algorithms)
	}
	if at, err := url.Parse(h.Get("Location")); err == nil && at.Path != "" {
		h.Set("Location", at.Path)
	}
	if h.Get("Upload-Offset") != "" || status == http.StatusCreated {
		h.Set("Upload-Expires", t.until.UTC().Format(http.TimeFormat))
	}
	t.ResponseWriter.WriteHeader(status)
}

// Unwrap is the writer below, for its deadlines.
func (t *telling) Unwrap() http.ResponseWriter { return t.ResponseWriter }

var setName = regexp.MustCompile(`^[0-9a-f]{8,32}$`)

// announced checks a file before its first byte. Its metadata are collection, filename, and of
// a drop of several files: name, path, files (how many), and set, which ties them together.
func (u *Uploads) announced(hook handler.HookEvent) (none handler.HTTPResponse, change handler.FileInfoChanges, err error) {
	given := hook.Upload.MetaData
	m := handler.MetaData{"collection": given["collection"], "name": given["name"], "path": given["path"], "files": given["files"], "set": given["set"]}
	file := path.Base(strings.ReplaceAll(given["filename"], `\`, "/"))
	if m["name"] == "" {
		m["name"] = file
	}
	if m["path"] == "" {
		m["path"] = file
	}
	if m["files"] == "" {
		m["files"] = "1"
	}
	collection, err := layout.ParseName(m["collection"])
	if err != nil {
		err = fmt.Errorf("collection: expected whose inbox it is for: %w", err)
	}
	if who := desk.Who(hook.Context); err == nil && !who.Reaches(string(collection)) {
		return none, change, problem(desk.NeedsAll(who))
	}
	if n, bad := strconv.Atoi(m["files"]); bad != nil || n < 1 || n > mostFiles {
		err = errors.Join(err, fault.New(fault.Invalid, "files: expected how many the drop has, at most 100,000"))
	}
	if m["set"] != "" && !setName.MatchString(m["set"]) {
		err = errors.Join(err, fault.New(fault.Invalid, "set: expected 8 to 32 hexadecimal digits"))
	}
	if err = errors.Join(err, u.checkDrop(collection, m["name"]), checkPath(m["path"])); err != nil {
		return none, change, problem(fault.New(fault.Invalid, err.Error()))
	}
	key := hook.HTTPRequest.Header.Get("Idempotency-Key")
	if key != "" {
		m[keyed] = partName(key)
	}
	switch {
	case m["set"] != "":
	case key != "": // the same call is about the same set
		m["set"] = m[keyed]
	default:
		if m["set"], err = u.draw(); err != nil {
			return none, change, err
		}
	}
	change.ID, change.MetaData = string(collection)+"~"+m["set"]+"~"+partName(m["path"]), m
	s, _, err := u.find(hook.Context, change.ID)
	again := false
	if err == nil && key != "" {
		again, err = s.again(m, hook.Upload.Size)
	}
	if err == nil && !again {
		err = errors.Join(u.room(s, hook.Upload.Size), s.free(m["name"]))
	}
	return none, change, problem(err)
}

// keyed is the name, in the description of a file, of the Idempotency-Key with which it was announced.
const keyed = "key"

// again reports whether a file was announced before with the same key. The descriptions of a set stay for a day, and
// outlive the server; another file with a key that was used is refused.
func (s set) again(m handler.MetaData, size int64) (bool, error) {
	for _, name := range s.names() {
		p, err := s.part(name)
		switch {
		case err != nil:
			return false, err
		case p.MetaData[keyed] != m[keyed]:
		case p.Size != size || !maps.Equal(p.MetaData, m):
			return false, handler.NewError("ERR_KEY_USED", "this Idempotency-Key came with another call before", http.StatusUnprocessableEntity)
		default:
			return true, nil
		}
	}
	return false, nil
}

// finished publishes the set of a file that is whole, if it was the last.
func (u *Uploads) finished(hook handler.HookEvent) (none handler.HTTPResponse, err error) {
	s, _, err := u.find(hook.Context, hook.Upload.ID)
	if err != nil {
		return none, problem(err)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	whole, known := u.whole[s.dir]
	all, _ := strconv.Atoi(hook.Upload.MetaData["files"]) // it was checked when it was announced
	if whole++; known && whole < all {
		u.whole[s.dir] = whole
		return none, nil
	}
	at, whole, err := s.finish()
	if u.whole[s.dir] = whole; at != "" {
		delete(u.whole, s.dir)
	}
	if at != "" && err == nil {
		u.d.Log.Info("upload", "drop", at, "files", hook.Upload.MetaData["files"], "name", desk.Who(hook.Context).Name, "from", hook.HTTPRequest.RemoteAddr)
	}
	return none, problem(err)
}

// problem is an error as tusd answers it.
func problem(err error) error {
	if err == nil {
		return nil
	}
	var own handler.Error
	if errors.As(err, &own) {
		return own
	}
	return handler.NewError("ERR_REFUSED", err.Error(), desk.Status(err))
}
