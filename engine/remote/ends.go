package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"strings"
	"syscall"

	"bagpipe/engine/attempt"
	"bagpipe/engine/fault"
	"bagpipe/engine/remote/wire"
	"bagpipe/engine/settings"
	"bagpipe/layout"
	"bagpipe/steps"
)

var noPlacement settings.Placement

// takeEnd ends an attempt as its worker says: the files are verified, then published as those
// of a robot of this machine.
func (r transfer) takeEnd(w http.ResponseWriter, q *http.Request, l *loan) {
	data, err := io.ReadAll(http.MaxBytesReader(w, q.Body, wire.MaxDocument))
	if err != nil {
		problem(w, http.StatusBadRequest, err.Error())
		return
	}
	said := r.endAs(q.Context(), l, data)
	if said.Code == http.StatusNoContent {
		w.WriteHeader(said.Code)
		return
	}
	problem(w, said.Code, said.Text, said.Want...)
}

// told ends an attempt of a worker that says so in a message.
func (r transfer) told(name layout.Name, e wire.Ending) wire.Taken {
	l, no := r.current(e.Held, true)
	switch {
	case no.Code != 0:
		return no
	case l.worker != name:
		gate(r).suspend(name, fmt.Sprintf("it ends attempt %s of item %s, which is not its", l.ref.Key, l.ref.Item.Short()))
		return taken(http.StatusGone, "this attempt is another worker's")
	}
	return r.endAs(context.Background(), l, e.End)
}

// endAs ends an attempt by the document of its End.
func (r transfer) endAs(ctx context.Context, l *loan, data []byte) wire.Taken {
	var end wire.End
	if err := wire.Decode(data, &end); err != nil {
		return taken(http.StatusBadRequest, err.Error())
	}
	if why := r.rooms.Room(); why != nil && end.Carries() {
		return taken(http.StatusInsufficientStorage, why.Error())
	}
	if l = r.close(l.ref); l == nil {
		return taken(http.StatusConflict, "the attempt is being ended")
	}
	l.settled()
	res, failure, want, bad := r.checked(ctx, l, end)
	if len(want) > 0 || bad != nil && ctx.Err() != nil {
		r.reopen(l)
		return taken(http.StatusUnprocessableEntity, "these files are not here as announced", want...)
	}
	if errors.Is(bad, syscall.ENOSPC) || errors.Is(bad, syscall.EDQUOT) { // what is said to be free may be another's
		r.reopen(l)
		return taken(http.StatusInsufficientStorage, bad.Error())
	}
	if bad != nil {
		res, failure = steps.Result{}, steps.SystemFailure("worker %s: %w", l.worker, bad)
		r.rooms.Log.Warn("a worker's end was refused", "worker", l.worker, "item", l.ref.Item, "step", l.ref.Step, "err", bad)
		if !end.Shared && lies(bad) {
			gate(r).suspend(l.worker, bad.Error())
		}
	}
	took := wire.Took{Attempts: 1, Wait: l.waited.Seconds(), Fetch: max(0, end.Fetched.Seconds()), Run: max(0, end.Ran.Seconds()), Send: max(0, end.Sent.Seconds())}
	r.mu.Lock()
	if w := r.workers[l.worker]; w != nil {
		w.took = w.took.Add(took)
	}
	if l.want != "" && (len(r.took) < mostAimed || r.took[l.want].Attempts > 0) {
		r.took[l.want] = r.took[l.want].Add(took)
	}
	r.mu.Unlock()
	if w, is := l.work.(*attempt.Away); is {
		w.Spent(end.CPU)
	}
	switch err := r.end(l, res, failure); {
	case err == nil:
		return taken(http.StatusNoContent, "")
	case fault.Is(err, fault.Refused):
		return taken(http.StatusGone, "this attempt is not the current one: "+err.Error())
	default:
		return taken(http.StatusServiceUnavailable, "the end could not be committed, and is to be told again: "+err.Error())
	}
}

// end commits an end that was checked. Only then it counts, and is acknowledged. Where it could not be
// committed, and will not be refused, the loan stays as it is: this engine stops, and the next one adopts
// the attempt, whose worker tells the end again.
func (r *Remote) end(l *loan, res steps.Result, failure error) error {
	ctx, log := context.Background(), l.logFile()
	if _, err := os.Lstat(log); err != nil {
		log = ""
	}
	var err error
	if errors.Is(failure, context.Canceled) {
		err = l.work.GiveUp(ctx, fmt.Sprintf("%s gave it back: %s", l.who(), res.Message))
	} else {
		err = l.work.End(ctx, res, failure, log)
	}
	if err != nil {
		if fault.Is(err, fault.Refused) {
			r.over(l, err)
		}
		return err
	}
	r.mu.Lock()
	if w := r.workers[l.worker]; w != nil && w.Engine == l.ref.Key.Engine {
		w.done++
		if w.lapses++; !timedOut(failure) {
			w.lapses = 0
		}
		if failure != nil {
			w.failed++
		}
	}
	if _, trial := l.work.(*attempt.Rehearsal); !trial {
		r.note(l, failure)
	}
	if len(r.ended) >= mostEnded {
		clear(r.ended)
	}
	r.ended[l.ref] = l.held.Nonce
	r.mu.Unlock()
	r.over(l, nil)
	return nil
}

// timedOut reports whether a robot took longer than its step may.
func timedOut(failure error) bool {
	return failure != nil && strings.HasPrefix(failure.Error(), "timed out after ")
}

// note remembers where a step did not go well, so that another worker tries it first; r.mu is held.
func (r *table) note(l *loan, failure error) {
	if failure == nil {
		delete(r.failedAt, stepOf(l.ref))
		return
	}
	if len(r.failedAt) >= mostEnded {
		clear(r.failedAt)
	}
	r.failedAt[stepOf(l.ref)] = l.worker
}

// lies reports whether what is wrong with an end is no failure of this machine: a file that is not there
// says that a robot failed, or that the worker lies, and is not held against it.
func lies(bad error) bool {
	var at *fs.PathError
	return !errors.As(bad, &at)
}

// mostEnded bounds the ends that are known when they come again.
const mostEnded = 16_384

// checked reads an end. want are files that are missing; bad says what a worker may not send.
func (r transfer) checked(ctx context.Context, l *loan, end wire.End) (res steps.Result, failure error, want []string, bad error) {
	if res, failure, bad = end.Result(); bad != nil {
		return res, failure, nil, bad
	}
	if len(end.Folders)+len(end.Files)+len(end.Log) == 0 && len(res.Outputs)+len(res.Children) == 0 {
		return res, failure, nil, nil // there may be no scratch folder: the robot needs none, or was never called
	}
	root, err := os.OpenRoot(l.work.Scratch())
	if err != nil {
		return res, failure, nil, err
	}
	defer root.Close()
	for _, dir := range end.Folders {
		p, err := layout.DecodePath(dir)
		if err != nil {
			return res, failure, nil, err
		}
		rel, err := layout.ParseRelPath(p)
		if err != nil {
			return res, failure, nil, err
		}
		if err := root.MkdirAll(string(rel), 0o777); err != nil {
			return res, failure, nil, err
		}
	}
	if len(end.Log) > 0 {
		bad = root.WriteFile(wire.LogFile, end.Log, 0o600)
	}
	if bad = errors.Join(bad, unload(root, end.Files)); bad != nil {
		return res, failure, nil, bad
	}
	if want, bad = verify(ctx, root, end.Files); len(want) > 0 || bad != nil {
		return res, failure, want, bad
	}
	if !end.Shared {
		if bad = onlyAnnounced(root, res, end.Files); bad != nil {
			return res, failure, nil, bad
		}
	}
	return res, failure, nil, steps.CheckMade(l.work.Scratch(), res)
}

// unload writes the files whose bytes came with an end.
func unload(root *os.Root, files []wire.File) error {
	for _, f := range files {
		if f.Data == nil && f.Size > 0 { // it came before
			continue
		}
		p, err := layout.DecodePath(f.Path)
		if err != nil {
			return err
		}
		rel, err := layout.ParseRelPath(p)
		if err == nil {
			err = root.MkdirAll(path.Dir(string(rel)), 0o777)
		}
		if err == nil {
			err = root.WriteFile(string(rel), f.Data, 0o666)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// onlyAnnounced refuses outputs and children with files whose digests were not told: they were
// not verified.
func onlyAnnounced(root *os.Root, res steps.Result, files []wire.File) error {
	told := map[string]bool{}
	for _, f := range files {
		p, err := layout.DecodePath(f.Path)
		if err != nil {
			return err
		}
		told[p] = true
	}
	var from []string
	for _, o := range res.Outputs {
		from = append(from, string(o.From))
	}
	for _, c := range res.Children {
		from = append(from, string(c.From))
	}
	for _, top := range from {
		err := fs.WalkDir(root.FS(), top, func(p string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && !told[p] {
				err = fmt.Errorf("%s was not announced", layout.EncodePath(p))
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
