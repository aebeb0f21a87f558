package bags

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"bagpipe/bags/files"
	"bagpipe/bags/tagfile"
	"bagpipe/layout"
)

// This file finishes changes that were interrupted.

// recover finishes what an interrupted call left.
func (r *rewrite) recover() (Outcome, error) {
	info, err := r.root.Lstat(WorkDir)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		return "", fmt.Errorf("%s is no folder; it is reserved for changes under way", WorkDir)
	}
	data, err := r.planData()
	if errors.Is(err, fs.ErrNotExist) {
		return r.undo()
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w; nothing was changed", planFile, err)
	}
	p, err := readPlan(data)
	if err != nil {
		return "", fmt.Errorf("%s: %w; nothing was changed", planFile, err)
	}
	r.sync = true
	if err := r.apply(p); err != nil {
		return "", fmt.Errorf("complete the interrupted change: %w", err)
	}
	return Completed, r.finish()
}

// planData reads the plan. It may have come with the folder: a FIFO would never end,
// and a file may have any size.
func (r *rewrite) planData() (_ []byte, err error) {
	o := &files.Opener{Root: r.root}
	defer o.Close()
	f, err := o.File(planFile)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	if info.Size() > mostPlan {
		return nil, fmt.Errorf("larger than the %d bytes that a plan may have", mostPlan)
	}
	return io.ReadAll(io.LimitReader(f, mostPlan))
}

func (r *rewrite) undo() (Outcome, error) {
	begun, err := r.exists(newDir)
	if err != nil {
		return "", err
	}
	if err := r.discard(); err != nil {
		return "", err
	}
	if !begun {
		r.cleared = true
		return "", nil // the very beginning or end of a call: there was nothing to undo
	}
	return Undone, nil
}

// readPlan takes a plan whose paths are plain, and leave data/ alone but for the
// making of a bag.
func readPlan(data []byte) (*plan, error) {
	var p plan
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, err
	}
	if p.Schema != planSchema {
		return nil, fmt.Errorf("schema %d is not known", p.Schema)
	}
	for _, list := range [][]string{p.Move, p.Put, p.Remove} {
		for _, e := range list {
			d, err := layout.DecodePath(e)
			if err != nil {
				return nil, err
			}
			if d == "" || d[0] == '/' || path.Clean(d) != d || hasParent(d) || d == WorkDir || strings.HasPrefix(d, WorkDir+"/") {
				return nil, fmt.Errorf("the path %s is not plain", e)
			}
		}
	}
	for _, list := range [][]string{p.Put, p.Remove} {
		for _, e := range list {
			if e == tagfile.PayloadDir || strings.HasPrefix(e, tagfile.PayloadPrefix) {
				return nil, fmt.Errorf("the path %s is the payload's", e)
			}
		}
	}
	return &p, nil
}
