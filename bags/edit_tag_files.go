package bags

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"

	"bagpipe/bags/files"
	"bagpipe/bags/tagfile"
	"bagpipe/layout"
)

// edit is a bag whose tag files are being replaced.
type edit struct {
	*rewrite
	v       *validator
	written map[string]bool // tag files that stand in the rewrite's place; large ones are not kept
	removed []string
}

// openEdit locks the bag, finishes what was interrupted, and reads it.
func openEdit(ctx context.Context, dir string, sync bool, o ValidateOptions) (*edit, Outcome, error) {
	if info, err := os.Stat(dir); err != nil {
		return nil, "", err
	} else if !info.IsDir() {
		return nil, "", fmt.Errorf("it is serialized: unpack it first, and serialize it again")
	}
	r, was, err := openRewrite(dir, sync, nil)
	if err != nil {
		return nil, "", err
	}
	v, err := openBag(ctx, dir, o)
	if err != nil {
		return nil, was, r.close(err)
	}
	e := &edit{rewrite: r, v: v, written: map[string]bool{}}
	if _, err := v.run(ctx); err != nil {
		return nil, was, e.close(err)
	}
	return e, was, nil
}

func (e *edit) put(p string, data []byte) error {
	e.written[p] = true
	return e.rewrite.put(p, data)
}

func (e *edit) remove(p string) { e.removed = append(e.removed, p) }

func (e *edit) writeFields(p string, fields []tagfile.Field) error {
	var b bytes.Buffer
	if err := tagfile.WriteInfo(&b, fields); err != nil {
		return err
	}
	return e.put(p, b.Bytes())
}

func (e *edit) writeManifest(prefix string, a files.Algorithm, lines map[string][]byte) error {
	paths := slices.Sorted(maps.Keys(lines))
	sums := make([][]byte, len(paths))
	for i, p := range paths {
		sums[i] = lines[p]
	}
	size := 0
	for i, p := range paths {
		size += len(p) + 2*len(sums[i]) + len("  \n")
	}
	b := bytes.NewBuffer(make([]byte, 0, size))
	if err := tagfile.WriteManifest(b, paths, sums); err != nil {
		return err
	}
	return e.put(prefix+string(a)+".txt", b.Bytes())
}

// addWritten puts the digests of what was written so far into a tag manifest's
// lines. It is read again: two manifests of a large bag are tens of megabytes.
func (e *edit) addWritten(lines map[string][]byte, a files.Algorithm) error {
	for p := range e.written {
		if _, isTag := tagfile.ManifestAlgorithm(p, tagfile.TagPrefix); isTag {
			continue
		}
		f, err := e.root.Open(path.Join(newDir, p))
		if err != nil {
			return err
		}
		h := a.New()
		_, err = io.Copy(h, f)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
		lines[p] = h.Sum(nil)
	}
	return nil
}

func (e *edit) commit() error {
	p := plan{}
	for _, w := range slices.Sorted(maps.Keys(e.written)) {
		p.Put = append(p.Put, layout.EncodePath(w))
	}
	for _, r := range e.removed {
		p.Remove = append(p.Remove, layout.EncodePath(r))
	}
	return e.rewrite.commit(p)
}

func (e *edit) close(err error) error { return errors.Join(e.rewrite.close(err), e.v.from.Close()) }
