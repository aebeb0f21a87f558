package bags

import (
	"context"
	"strings"

	"bagpipe/bags/files"
	"bagpipe/bags/tagfile"
)

// How a bag's digests are computed. The rules are:
//
//   - every file is read once, for all its digests;
//   - in a folder this begins before the manifests are read, as their names say
//     which digests there will be (20,000 small files: 15 ms of 200). Digests
//     known by then are held back until the manifests can be asked, and only so
//     many that memory does not grow with the bag;
//   - nothing is read early where a first error would end the work;
//   - a file that cannot be read ends the early work only: it may be one that no
//     manifest lists, which is a finding and no failure of the machine.

// heldMost bounds the files that wait for the manifests.
const heldMost = 4096

// hashing is the digests of a folder under way. Its fields are used by the
// hashing's callbacks, which do not overlap, and after them by digests.
type hashing struct {
	v      *validator
	ready  chan struct{} // closed when the manifests are read
	end    chan error    // the hashing's answer
	cancel context.CancelFunc
	held   []files.Hashed
	opened bool
}

// beginDigests is a check that finds nothing: it begins to hash what will be asked.
func (v *validator) beginDigests(ctx context.Context) error {
	if _, inFolder := v.from.(*folderBag); !inFolder || v.o.Level != Full || v.o.FailFast || v.o.only != nil {
		return nil
	}
	payload, tags := files.SetOf(v.payloads...)|v.o.also, v.o.also
	for _, t := range v.tagSets {
		tags |= files.SetOf(t.algorithm)
	}
	var plan []files.Planned
	for i := range v.tree.Files {
		f := &v.tree.Files[i]
		set := tags
		if strings.HasPrefix(f.Path, tagfile.PayloadPrefix) {
			set = payload
		}
		if set != 0 {
			plan = append(plan, files.Planned{Index: i, Path: f.Path, Size: f.Size, Set: set})
		}
	}
	h := &hashing{v: v, ready: make(chan struct{}), end: make(chan error, 1)}
	ctx, h.cancel = context.WithCancel(ctx)
	v.early = h
	go func() {
		h.end <- v.hash(ctx, plan, func(one files.Hashed) error { return h.hold(ctx, one) })
	}()
	return nil
}

// hold keeps a file's digests until the manifests are read.
func (h *hashing) hold(ctx context.Context, one files.Hashed) error {
	if !h.opened && len(h.held) < heldMost {
		select {
		case <-h.ready:
		default:
			one.Head = nil
			h.held = append(h.held, one)
			return nil
		}
	}
	if !h.opened {
		select {
		case <-h.ready:
		case <-ctx.Done():
			return ctx.Err()
		}
		h.opened = true
		h.release()
	}
	return h.v.answer(one)
}

func (h *hashing) release() {
	for i := range h.held {
		_ = h.v.answer(h.held[i]) // it ends nothing: hashing begins early only where all errors are asked for
	}
	h.held = nil
}

// stopDigests ends what was begun early and nobody asked for.
func (v *validator) stopDigests() {
	if v.early != nil {
		v.early.cancel()
		<-v.early.end
		v.early = nil
	}
}

// finish releases what is held, now that the manifests are read, and waits for the rest.
func (h *hashing) finish() error {
	close(h.ready)
	err := <-h.end
	h.cancel()
	h.release()
	return err
}

// digests hashes every file, once, and compares.
func (v *validator) digests(ctx context.Context) error {
	if v.early != nil {
		found := len(v.report.Findings)
		err := v.early.finish()
		v.early = nil
		if err == nil || ctx.Err() != nil {
			return err
		}
		v.report.Findings = v.report.Findings[:found]
	}
	if v.o.Level != Full && v.o.only == nil {
		return nil
	}
	var plan []files.Planned
	for i := range v.tree.Files {
		f := &v.tree.Files[i]
		if v.o.only != nil && !v.o.only(f.Path) {
			continue
		}
		set := v.o.also
		for _, from := range []map[string]*listed{v.payload, v.tags} {
			if e := from[f.Path]; e != nil {
				set |= e.known
			}
		}
		if set != 0 {
			plan = append(plan, files.Planned{Index: i, Path: f.Path, Size: f.Size, Set: set})
		}
	}
	return v.hash(ctx, plan, v.answer)
}

func (v *validator) hash(ctx context.Context, plan []files.Planned, each func(files.Hashed) error) error {
	return v.from.Hash(ctx, plan, files.HashOptions{Workers: v.o.Workers, Progress: v.o.Progress}, each)
}

// answer compares one file's digests with what the manifests say.
func (v *validator) answer(h files.Hashed) error {
	f := &v.tree.Files[h.Index]
	if v.o.collect != nil {
		v.o.collect(f.Path, &h.Sums)
	}
	v.compare(v.payload[f.Path], f.Path, &h.Sums)
	v.compare(v.tags[f.Path], f.Path, &h.Sums)
	return v.enough()
}
