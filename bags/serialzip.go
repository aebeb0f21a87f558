package bags

import (
	"context"
	"errors"
	"io"
	"io/fs"

	"github.com/klauspost/compress/zip"
)

// zipBag is a bag in a zip: every member can be opened by itself.
type zipBag struct {
	src   *source
	name  string
	files map[string]*zip.File
}

// listZip reads the directory by the rules of unpacking.
func (l *listedArchive) listZip(src *source) (contents, error) {
	s := newSink(nil, l.name, l.input, ExtractOptions{Limits: l.limits})
	s.report.Format = Zip
	z, entries, err := openZip(src, l.input, s)
	for _, w := range s.report.Warnings {
		l.warned = append(l.warned, Finding{Code: CodeArchive, Severity: SeverityWarning, Text: w})
	}
	if err != nil {
		return nil, err
	}
	b := &zipBag{src: src, name: l.name, files: make(map[string]*zip.File, len(z.File))}
	for i, f := range z.File {
		mode, err := zipMode(s, f, entries[i])
		if err != nil {
			return nil, err
		}
		m := archiveMember{stored: entries[i].text, size: int64(f.UncompressedSize64), mode: mode, time: f.Modified, at: int64(i)}
		if err := l.add(m); err != nil {
			return nil, err
		}
	}
	for i := range l.members {
		b.files[l.members[i].path] = z.File[l.members[i].at]
	}
	return b, nil
}

// zipMode gives a link's or special file's mode for the bag's own finding; what
// else is wrong with a member is an error.
func zipMode(s *sink, f *zip.File, e zipEntry) (fs.FileMode, error) {
	mode, dir, err := s.zipMember(f, e)
	var broken *Error
	if errors.As(err, &broken) && (broken.Rule == RuleSymlink || broken.Rule == RuleSpecial) {
		return f.Mode(), nil
	}
	if dir {
		mode |= fs.ModeDir
	}
	return mode, err
}

func (b *zipBag) open(p string) (io.ReadCloser, error) {
	f := b.files[p]
	if f == nil {
		return nil, fs.ErrNotExist
	}
	r, err := f.Open()
	if err != nil {
		return nil, b.damaged(f, err)
	}
	return &zipFileReader{r: r, bag: b, file: f}, nil
}

func (b *zipBag) damaged(f *zip.File, err error) error {
	if cause := b.src.failure(); cause != nil {
		return cause
	}
	rule, detail := damage(err)
	return &Error{Archive: b.name, Member: f.Name, Rule: rule, Detail: detail, Err: err}
}

func (b *zipBag) hash(ctx context.Context, plan []hashItem, o HashOptions, each func(Hashed) error) error {
	return hashFrom(ctx, func() fileOpener { return zipOpener{b} }, plan, o, each)
}

func (b *zipBag) close() error { return b.src.f.Close() }

type zipOpener struct{ bag *zipBag }

func (o zipOpener) open(p string) (fileReader, error) {
	r, err := o.bag.open(p)
	if err != nil {
		return nil, err
	}
	return r.(*zipFileReader), nil
}

func (zipOpener) close() {}

// zipFileReader says of a damaged member which it is.
type zipFileReader struct {
	r    io.ReadCloser
	bag  *zipBag
	file *zip.File
}

func (r *zipFileReader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = r.bag.damaged(r.file, err)
	}
	return n, err
}

// endsShort: the zip's own check sum is compared where the end is met.
func (r *zipFileReader) endsShort() bool { return false }
func (r *zipFileReader) close() error    { return r.r.Close() }
func (r *zipFileReader) Close() error    { return r.r.Close() }
