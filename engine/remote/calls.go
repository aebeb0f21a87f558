package remote

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"bagpipe/engine/remote/wire"
	"bagpipe/engine/state"
	"bagpipe/layout"
	"bagpipe/steps"
)

var noResult steps.Result

// errMuch says that a message cannot carry what a robot is given.
var errMuch = errors.New("more than a message carries")

// given is callOf; an error in preparing the attempt ends it.
func (r transfer) given(ctx context.Context, l *loan, carried bool) (wire.Call, error) {
	call, err := r.callOf(ctx, l, carried)
	if err == nil || ctx.Err() != nil || errors.Is(err, errMuch) {
		return call, err
	}
	if l := r.close(l.ref); l != nil {
		r.over(l, l.work.End(context.WithoutCancel(ctx), noResult, err, ""))
	}
	return call, fmt.Errorf("the attempt has ended: %w", err)
}

// callOf prepares an attempt, once, and words what the robot is given; carried with the bytes of all files, or errMuch.
func (r transfer) callOf(ctx context.Context, l *loan, carried bool) (wire.Call, error) {
	l.prepare.Lock()
	defer l.prepare.Unlock()
	r.mu.Lock()
	over := r.loans[l.ref] != l || l.ending
	r.mu.Unlock()
	if over {
		return wire.Call{}, errors.New("it was ended meanwhile")
	}
	prepare := l.work.Prepare
	if l.prepared {
		prepare = l.work.Again
	}
	l.prepared = true
	c, s, err := prepare(context.WithoutCancel(ctx))
	if err != nil {
		return wire.Call{}, err
	}
	call := wire.Call{Head: wire.Now(), Collection: c.Collection, Label: []byte(c.Label), Robot: l.robot, With: c.With,
		Env: s.Env, Timeout: time.Duration(s.Timeout), Limits: c.Limits,
		Records: wire.Records{SourceKind: c.SourceKind, Manifest: c.Manifest, Inventory: c.Inventory, Execution: c.Execution}, Sent: wire.Sent{Shared: l.shared}}
	if call.Robot == "" { // of an adopted attempt
		call.Robot = robotName(s)
	}
	if len(s.Command) > 0 {
		call.Arguments = s.Command[1:]
	}
	for _, file := range c.Profiles {
		data, err := os.ReadFile(file)
		if err != nil {
			return call, steps.SystemFailure("read a profile: %w", err)
		}
		call.Profiles = append(call.Profiles, data)
	}
	if s.Command == nil && r.rooms.Robots[layout.Name(s.Robot)].Fileless {
		call.Bare = true
		return call, nil
	}
	if l.shared {
		call.Dir, call.Scratch, call.Source, call.Content, call.Place = layout.EncodePath(c.Dir), layout.EncodePath(c.Scratch),
			layout.EncodePath(c.Source), layout.EncodePath(c.Content), layout.EncodePath(c.Place)
		for _, name := range c.Beside {
			call.Beside = append(call.Beside, layout.EncodePath(name))
		}
		return call, nil
	}
	below, err := filepath.Rel(c.Dir, c.Content)
	if err != nil || c.Place != "" || !filepath.IsLocal(below) {
		return call, steps.SystemFailure("the object stays where it is, and worker %s does not share its file system", l.worker)
	}
	call.Source, call.Content = layout.SourceDir, layout.EncodePath(filepath.ToSlash(below))
	return call, r.list(ctx, c.Dir, l.send, &call, carried)
}

// list finds the files of an item that are sent, and their digests; carried with their bytes, or errMuch.
func (r transfer) list(ctx context.Context, dir string, send []string, call *wire.Call, carried bool) error {
	left, sent := int64(wire.MostCarried), map[string]bool{} // by digest
	if len(send) == 0 {
		send = []string{layout.SourceDir, layout.ContentDir, layout.DerivedDir}
	}
	for _, top := range send {
		err := filepath.WalkDir(filepath.Join(dir, top), func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			rel, err := filepath.Rel(dir, path)
			if err != nil {
				return err
			}
			name := layout.EncodePath(filepath.ToSlash(rel))
			switch {
			case d.IsDir():
				call.Folders = append(call.Folders, name)
				return nil
			case !d.Type().IsRegular():
				return steps.SystemFailure("%s is no file and no folder, and cannot be sent", name)
			}
			if carried {
				info, err := d.Info()
				if err != nil {
					return err
				}
				if info.Size() > left || len(call.Files) >= wire.MostFiles {
					return errMuch
				}
				data, err := os.ReadFile(path)
				f := wire.Carried(name, data, info.Mode()&0o100 != 0)
				if sent[f.SHA256] { // the worker makes it of the other
					f.Data = nil
				} else {
					left, sent[f.SHA256] = left-f.Size, true
				}
				call.Files = append(call.Files, f)
				return err
			}
			sum, info, err := r.sums.of(path)
			if err != nil {
				return err
			}
			call.Files = append(call.Files, wire.File{Path: name, Size: info.Size(), SHA256: sum, Exec: info.Mode()&0o100 != 0})
			return nil
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("list the files to be sent: %w", err)
		}
	}
	return nil
}

// robotName is by which name workers know who does a step.
func robotName(s *state.Step) layout.Name { return demandOf(s, noPlacement, "").Robot }

// sums remembers the digests of files that have not changed since.
type sums struct {
	mu    sync.Mutex // guards known
	known map[stamp]string
}

// stamp tells a file's content apart as far as its metadata can.
type stamp struct {
	dev, inode  uint64
	size        int64
	mtime, made int64
}

// mostSums bounds the memory of digests; they are begun anew beyond it.
const mostSums = 200_000

func (s *sums) of(path string) (sum string, info fs.FileInfo, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", nil, err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return "", nil, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", nil, fmt.Errorf("%s: no metadata", path)
	}
	at := stamp{st.Dev, st.Ino, st.Size, st.Mtim.Nano(), st.Ctim.Nano()}
	s.mu.Lock()
	sum = s.known[at]
	s.mu.Unlock()
	if sum != "" {
		return sum, info, nil
	}
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", nil, err
	}
	sum = hex.EncodeToString(h.Sum(nil))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil || len(s.known) >= mostSums {
		s.known = map[stamp]string{}
	}
	s.known[at] = sum
	return sum, info, nil
}

// verify tells which files of an end are not here as announced.
func verify(ctx context.Context, root *os.Root, files []wire.File) (want []string, err error) {
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		p, err := layout.DecodePath(f.Path)
		if err != nil {
			return nil, err
		}
		rel, err := layout.ParseRelPath(p)
		if err != nil {
			return nil, err
		}
		if ok, err := isAs(root, string(rel), f); err != nil || !ok {
			want = append(want, f.Path)
		}
	}
	return slices.Clip(want), nil
}

func isAs(root *os.Root, rel string, want wire.File) (bool, error) {
	in, info, err := openPlain(root, rel)
	if err != nil {
		return false, err
	}
	defer in.Close()
	if info.Size() != want.Size {
		return false, nil
	}
	if want.Exec {
		if err := in.Chmod(info.Mode() | 0o111); err != nil {
			return false, err
		}
	}
	h := sha256.New()
	if _, err := io.Copy(h, in); err != nil {
		return false, err
	}
	return hex.EncodeToString(h.Sum(nil)) == want.SHA256, nil
}
