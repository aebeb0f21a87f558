package submit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"bagpipe/engine/attempt"
	"bagpipe/engine/fault"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/inbox"
	"bagpipe/engine/intake"
	"bagpipe/engine/ledger"
	"bagpipe/engine/remote/wire"
	"bagpipe/engine/web/access"
	"bagpipe/engine/web/internal/desk"
	"bagpipe/layout"
	"bagpipe/layout/disk"
)

// lasts is how long a submission is kept in which nothing moves.
const lasts = 24 * time.Hour

// mostFiles bounds one submission.
const mostFiles = 100_000

// keyed is what a key looks like: it stands in paths, and in the item. It is compiled when it is
// asked for: every start of the program would pay for it.
var keyed = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$`) })

// Submissions are those of one workspace.
type Submissions struct {
	d     *desk.Desk
	mu    sync.Mutex // guards ends
	ends  map[string]*ending
	swept time.Time
}

// ending is held by who adds to a submission, or ends it.
type ending struct {
	sync.Mutex
	waits int
}

// New gives the submissions of a workspace.
func New(d *desk.Desk) *Submissions { return &Submissions{d: d, ends: map[string]*ending{}} }

// enter checks that who asks may submit, and the key.
func (s *Submissions) enter(ctx context.Context, key string) error {
	if _, err := s.d.Acts(ctx, access.Operator); err != nil {
		return err
	}
	if !keyed().MatchString(key) {
		return fault.New(fault.Invalid, fmt.Sprintf("key %q: expected 1 to 128 letters, digits, dots, colons, hyphens or underscores", key))
	}
	return nil
}

// dir is where a submission lies; another account's of the same key is another, until one of
// them is an item.
func (s *Submissions) dir(ctx context.Context, key string) string {
	sum := sha256.Sum256([]byte(key + "\x00" + desk.Who(ctx).Email))
	return filepath.Join(s.d.Root, filepath.FromSlash(layout.SubmittedDir), hex.EncodeToString(sum[:12]))
}

// Find tells how a submission stands.
func (s *Submissions) Find(ctx context.Context, key string) (wire.Submitted, error) {
	if who := desk.Who(ctx); !who.Role.May(access.Viewer) {
		return wire.Submitted{}, desk.NeedsRole(who, access.Viewer)
	}
	out, there, err := s.item(ctx, key)
	if err != nil || there {
		return out, err
	}
	dir := s.dir(ctx, key)
	out.Here = map[string]int64{}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		out.Here[layout.EncodePath(filepath.ToSlash(rel))] = info.Size()
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return out, fault.New(fault.NotFound, fmt.Sprintf("nothing was submitted with key %s", key))
	}
	return out, err
}

// item finds the item that a submission became.
func (s *Submissions) item(ctx context.Context, key string) (out wire.Submitted, there bool, err error) {
	out.Key = key
	id, err := s.d.Intake.ItemOf(ctx, wire.SubmissionKind, key)
	if err != nil || id == "" {
		return out, false, err
	}
	if err := s.d.Reach(ctx, id); err != nil {
		return out, false, fault.New(fault.Refused, fmt.Sprintf("key %s is another account's", key))
	}
	m, err := s.d.Ask.Manifest(id)
	if err != nil {
		return out, false, err
	}
	out.Item, out.Collection, out.Label = id, m.Collection, m.Label
	return out, true, nil
}

// Put takes a part of a file. What the file has behind the offset is replaced; a part that is
// not as its digest says is taken back.
func (s *Submissions) Put(ctx context.Context, key, path string, offset int64, digest []byte, body io.Reader) (err error) {
	if err := s.enter(ctx, key); err != nil {
		return err
	}
	rel, err := relPath(path)
	if err != nil {
		return err
	}
	free, err := disk.Free(s.d.Root)
	if err != nil {
		return err
	}
	if least := s.d.Settings.Current().Settings.Free(); free < least {
		return fault.New(fault.Busy, "there is no room for submissions")
	}
	s.sweep()
	defer s.alone(key)()
	dir := s.dir(ctx, key)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.MkdirAll(filepath.Dir(rel), 0o777); err != nil {
		return fault.New(fault.Refused, err.Error())
	}
	f, err := root.OpenFile(rel, os.O_WRONLY|os.O_CREATE, 0o666)
	if err != nil {
		return fault.New(fault.Refused, err.Error())
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() < offset {
		return fault.New(fault.Refused, fmt.Sprintf("%d bytes of %s are here, not %d", info.Size(), path, offset))
	}
	if err := f.Truncate(offset); err != nil {
		return err
	}
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		return err
	}
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(f, sum), body); err != nil {
		return errors.Join(err, f.Truncate(offset))
	}
	if string(sum.Sum(nil)) != string(digest) {
		return errors.Join(fault.New(fault.Invalid, fmt.Sprintf("the bytes of %s are not those of Content-Digest", path)), f.Truncate(offset))
	}
	return nil
}

func relPath(path string) (string, error) {
	p, err := layout.DecodePath(path)
	if err == nil {
		var rel layout.RelPath
		if rel, err = layout.ParseRelPath(p); err == nil {
			return string(rel), nil
		}
	}
	return "", fault.New(fault.Invalid, err.Error())
}

// End makes an item of a submission, once; Want lists the files that are not here as announced.
func (s *Submissions) End(ctx context.Context, key string, in wire.Submission) (out wire.Submitted, err error) {
	if err := s.enter(ctx, key); err != nil {
		return out, err
	}
	if who := desk.Who(ctx); len(who.Collections) > 0 && !who.Reaches(string(in.Collection)) {
		return out, desk.NeedsAll(who)
	}
	defer s.alone(key)()
	out, there, err := s.item(ctx, key)
	if err == nil && there {
		err = os.RemoveAll(s.dir(ctx, key)) // what came of it once more
	}
	if err != nil || there {
		return out, err
	}
	name, err := check(in)
	if err != nil {
		return out, err
	}
	dir := s.dir(ctx, key)
	if out.Want, err = s.complete(ctx, dir, in); err != nil || len(out.Want) > 0 {
		return out, err
	}
	who := desk.Who(ctx)
	said := &inbox.Said{Identifiers: map[string]string{wire.SubmissionKind: key}, Metadata: in.Metadata}
	if in.Worker != "" {
		said.Metadata = map[string]any{attempt.OnWorker: string(in.Worker)}
		maps.Copy(said.Metadata, in.Metadata)
	}
	for kind, value := range in.Identifiers {
		said.Identifiers[kind] = value
	}
	said.Identifiers[wire.SubmissionKind] = key
	got, err := s.d.Intake.Add(context.WithoutCancel(ctx), filepath.Join(dir, name), intake.AddOptions{Workflow: in.Workflow, Collection: in.Collection, Label: in.Label, Lane: in.Lane,
		Batch: in.Batch, Move: true, Said: said, By: ledger.PersonActor(gitstore.Signature{Name: who.Name, Email: who.Email})})
	if bad, is := errors.AsType[*inbox.BadError](err); is {
		err = fault.New(fault.Invalid, name+": "+bad.Error())
	}
	if err != nil {
		return out, err
	}
	if got.Rejected != "" {
		if out, there, err = s.item(ctx, key); err != nil || there { // another process was faster
			return out, err
		}
		return out, fault.New(fault.Refused, fmt.Sprintf("%s: %s (kept as %s)", got.Label, got.Rejected, got.KeptAs))
	}
	out.Item, out.Collection, out.Label, out.Workflow = got.Item, got.Collection, got.Label, got.Workflow
	s.d.Log.Info("submitted", "item", got.Item, "key", key, "name", who.Name)
	return out, os.RemoveAll(dir)
}

// alone keeps others with a key out until the answer is called.
func (s *Submissions) alone(key string) (done func()) {
	s.mu.Lock()
	e := s.ends[key]
	if e == nil {
		e = &ending{}
		s.ends[key] = e
	}
	e.waits++
	s.mu.Unlock()
	e.Lock()
	return func() {
		e.Unlock()
		s.mu.Lock()
		defer s.mu.Unlock()
		if e.waits--; e.waits == 0 {
			delete(s.ends, key)
		}
	}
}

// check refuses paths that are none, and more than one name at the top.
func check(in wire.Submission) (name string, err error) {
	if len(in.Files) > mostFiles || len(in.Files)+len(in.Folders) == 0 {
		return "", fault.New(fault.Invalid, fmt.Sprintf("%d files: expected 1 to %d, or a folder", len(in.Files), mostFiles))
	}
	paths := slices.Clone(in.Folders)
	for _, f := range in.Files {
		paths = append(paths, f.Path)
	}
	for _, path := range paths {
		rel, err := relPath(path)
		if err != nil {
			return "", err
		}
		top, _, _ := strings.Cut(rel, "/")
		if name == "" {
			name = top
		}
		if top != name || strings.HasPrefix(name, ".") {
			return "", fault.New(fault.Invalid, fmt.Sprintf("%s: all paths begin with the name of the drop, %s, which is not hidden", path, name))
		}
	}
	return name, nil
}

// complete makes the folders, removes what was not announced, and lists the files that are not
// here as announced.
func (s *Submissions) complete(ctx context.Context, dir string, in wire.Submission) (want []string, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	told := map[string]bool{}
	for _, folder := range in.Folders {
		rel, err := relPath(folder)
		if err != nil {
			return nil, err
		}
		if err := root.MkdirAll(rel, 0o777); err != nil {
			return nil, fault.New(fault.Invalid, err.Error())
		}
	}
	for _, f := range in.Files {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		rel, err := relPath(f.Path)
		if err != nil {
			return nil, err
		}
		told[rel] = true
		if ok, err := as(root, rel, f); err != nil || !ok {
			want = append(want, f.Path)
		}
	}
	if len(want) > 0 {
		return want, nil
	}
	return nil, fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !told[path] {
			err = root.Remove(path)
		}
		return err
	})
}

func as(root *os.Root, rel string, want wire.File) (bool, error) {
	f, err := root.Open(rel)
	if err != nil {
		return false, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() != want.Size {
		return false, err
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return false, err
	}
	if want.Exec {
		err = f.Chmod(info.Mode() | 0o111)
	}
	return hex.EncodeToString(sum.Sum(nil)) == want.SHA256, err
}

// sweep removes, now and then, the submissions in which nothing moved for a day.
func (s *Submissions) sweep() {
	s.mu.Lock()
	now := s.d.Now()
	due := now.Sub(s.swept) > time.Hour
	if due {
		s.swept = now
	}
	s.mu.Unlock()
	if !due {
		return
	}
	dirs, _ := filepath.Glob(filepath.Join(s.d.Root, filepath.FromSlash(layout.SubmittedDir), "*"))
	for _, dir := range dirs {
		moved := time.Time{}
		_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error { // what vanishes meanwhile is none
			if err == nil {
				if info, err := d.Info(); err == nil && info.ModTime().After(moved) {
					moved = info.ModTime()
				}
			}
			return nil
		})
		if now.Sub(moved) > lasts {
			if err := os.RemoveAll(dir); err != nil {
				s.d.Log.Warn("a submission that was given up could not be removed", "err", err)
			}
		}
	}
}
