package archive

import (
	"context"
	"errors"
	"io"
	"io/fs"

	"bagpipe/bags/archive/internal/compress"
	"bagpipe/bags/archive/internal/notes"
	"bagpipe/bags/archive/internal/zips"
	"bagpipe/bags/files"

	"github.com/klauspost/compress/zip"
)

// zipView is a bag in a zip: every member can be opened by itself.
type zipView struct {
	v     *View
	files map[string]*zip.File
}

// listZip reads the directory by the rules of unpacking.
func (v *View) listZip() (viewed, error) {
	z, entries, err := zips.Open(v.src, v.input, zips.Options{Files: v.limits.Files, Memory: v.limits.Memory}, &v.notes)
	if err != nil {
		return nil, err
	}
	b := &zipView{v: v, files: make(map[string]*zip.File, len(z.File))}
	for i, f := range z.File {
		mode, err := zipMode(f, entries[i], &v.notes)
		if err != nil {
			return nil, err
		}
		p, err := v.add(entries[i].Text, Member{Size: int64(f.UncompressedSize64), Mode: mode, Time: f.Modified})
		if err != nil {
			return nil, err
		}
		b.files[p] = f // "" for a folder, which is not opened
	}
	return b, nil
}

// zipMode gives a link's or special file's mode for the bag's own finding; what
// else is wrong with a member is an error.
func zipMode(f *zip.File, e zips.Entry, n *notes.Notes) (fs.FileMode, error) {
	mode, dir, err := zips.CheckMember(f, e, n)
	var broken *files.Error
	if errors.As(err, &broken) && (broken.Rule == files.RuleSymlink || broken.Rule == files.RuleSpecial) {
		return f.Mode(), nil
	}
	if dir {
		mode |= fs.ModeDir
	}
	return mode, err
}

func (b *zipView) open(p string) (io.ReadCloser, error) {
	f := b.files[p]
	if f == nil {
		return nil, fs.ErrNotExist
	}
	r, err := f.Open()
	if err != nil {
		return nil, b.damaged(f, err)
	}
	return &zipFileReader{r: r, from: b, file: f}, nil
}

func (b *zipView) damaged(f *zip.File, err error) error {
	if cause := b.v.src.Failure(); cause != nil {
		return cause
	}
	return compress.Broken(&b.v.notes, f.Name, err)
}

func (b *zipView) hash(ctx context.Context, plan []files.Planned, o files.HashOptions, each func(files.Hashed) error) error {
	return files.HashOpened(ctx, b.open, plan, o, each)
}

func (b *zipView) close() error { return nil }

// zipFileReader says of a damaged member which it is.
type zipFileReader struct {
	r    io.ReadCloser
	from *zipView
	file *zip.File
}

func (r *zipFileReader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = r.from.damaged(r.file, err)
	}
	return n, err
}

// Close ends the reading of the member.
func (r *zipFileReader) Close() error { return r.r.Close() }
