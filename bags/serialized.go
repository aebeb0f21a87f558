package bags

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"bagpipe/layout"
)

// How a serialized bag is validated. The rules are:
//
//   - nothing is unpacked. The archive is listed first, and then its members are
//     hashed: those of a zip or a plain tar on all cores, as they can be found
//     again; those of a compressed tar in their order, by decompressing it again;
//   - tag files of the specification in a compressed tar are kept in a temporary
//     file that has no name any more, so memory does not grow with the bag;
//   - what the unpack robot would refuse is a finding, with one exception: control
//     characters in names, which RFC 8493 has percent-encoding for;
//   - the bag is the archive's one folder. What macOS and Windows leave beside it
//     is passed over.

// sectionSerialization is where 0.97 has the rules that RFC 8493 left out.
const sectionSerialization = "draft-kunze-bagit-14, 4"

// spoolMost bounds the tag files kept of a compressed tar.
const spoolMost = 4 << 30

// archiveMember is one file of an archive, by its place.
type archiveMember struct {
	path   string // cleaned
	stored string // as the archive has it
	size   int64
	mode   fs.FileMode
	time   time.Time
	at     int64 // a zip's index, an offset in a tar or in the spool; -1 unknown
}

// listedArchive is an archive's directory.
type listedArchive struct {
	name    string
	format  Format
	limits  Limits
	input   int64
	members []archiveMember
	paths   admission
	order   []string // the folders, as they appeared, those that only lie above files included
	total   int64
	warned  []Finding
}

func openSerialized(ctx context.Context, file string, o ValidateOptions) (*validator, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	v, err := listSerialized(ctx, f, o)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return v, nil
}

func listSerialized(ctx context.Context, f *os.File, o ValidateOptions) (*validator, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	src := &source{f: f}
	l := &listedArchive{
		name: baseName(f.Name()), limits: o.Limits.withDefaults(), input: info.Size(),
	}
	l.paths = newAdmission(l.name, l.limits, func(_, p string, dir bool) {
		if dir {
			l.order = append(l.order, p)
		}
	})
	l.paths.controls = true
	l.format = sniff(src, l.name)
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	from, err := l.list(ctx, src)
	if cause := src.failure(); cause != nil {
		return nil, cause
	}
	var broken *Error
	if err != nil && !errors.As(err, &broken) {
		return nil, err
	}
	if from == nil {
		from = &unreadBag{f: f}
	}
	tree, base := l.bag()
	v := newValidator(tree, &withinBase{contents: from, base: base}, o)
	v.report.Bag, v.report.Archive = encoded(l.name), l.format
	v.report.Findings = append(v.report.Findings, l.warned...)
	if broken != nil {
		v.broken(broken)
		return v, nil
	}
	v.serialization(l, base)
	return v, nil
}

func (l *listedArchive) list(ctx context.Context, src *source) (contents, error) {
	switch l.format {
	case Zip:
		return l.listZip(src)
	case Tar, TarGzip, TarZstd, TarBzip2, TarXz, TarLz4:
		return l.listTar(ctx, src)
	case SevenZip, Rar:
		return nil, l.broken("", RuleNotArchive, "bags are read in zips and tars as they are; unpack this "+string(l.format)+" first")
	}
	return nil, l.broken("", RuleNotArchive, "neither zip nor tar, plain or compressed")
}

func (l *listedArchive) broken(name string, rule Rule, detail string) *Error {
	return &Error{Archive: l.name, Member: name, Rule: rule, Detail: detail}
}

// add admits one member: a file, a folder, or (with a mode that says so) a link or
// special file.
func (l *listedArchive) add(m archiveMember) error {
	dir := m.mode.IsDir()
	l.paths.zipped = l.format == Zip
	p, err := l.paths.admit(m.stored, dir)
	if err != nil || p == "" {
		return err
	}
	m.path = p
	if rule, detail := l.limits.overFile(m.size); rule != "" {
		return l.broken(m.stored, rule, detail)
	}
	if l.total += m.size; l.total < 0 || m.size < 0 {
		return l.broken(m.stored, RuleSize, "the archive gives an impossible size")
	}
	if rule, detail := l.limits.overBytes(l.total, l.input); rule != "" {
		return l.broken(m.stored, rule, detail)
	}
	if !dir {
		l.members = append(l.members, m)
	}
	return nil
}

// bag gives the listing of the bag in the archive, and the folder it is in, "" for
// the archive's own top.
func (l *listedArchive) bag() (*Tree, string) {
	base := l.base()
	prefix := base + "/"
	if base == "" {
		prefix = ""
	}
	t := &Tree{Dir: l.name}
	for i := range l.members {
		m := &l.members[i]
		rel, ok := strings.CutPrefix(m.path, prefix)
		if !ok {
			continue
		}
		e := Entry{Path: rel, Size: m.size, Mode: m.mode, Time: m.time}
		if m.mode.IsRegular() {
			t.Files = append(t.Files, e)
		} else {
			t.Others = append(t.Others, e)
		}
	}
	for _, d := range l.order {
		if rel, ok := strings.CutPrefix(d, prefix); ok && rel != "" {
			t.Folders = append(t.Folders, Entry{Path: rel, Mode: fs.ModeDir | folderPerm})
		}
	}
	return t, base
}

// base finds the bag: the archive's top where bagit.txt is there, else the only
// folder, or the only one with a bagit.txt.
func (l *listedArchive) base() string {
	if dir, ok := l.paths.isDir[declarationFile]; ok && !dir {
		return ""
	}
	var folders, declared []string
	for _, d := range l.order {
		if strings.Contains(d, "/") || isNoise(d) {
			continue
		}
		folders = append(folders, d)
		if dir, ok := l.paths.isDir[d+"/"+declarationFile]; ok && !dir {
			declared = append(declared, d)
		}
	}
	switch {
	case len(declared) > 0:
		return declared[0]
	case len(folders) > 0:
		return folders[0]
	}
	return ""
}

// serialization reports what is wrong with how the bag lies in the archive.
func (v *validator) serialization(l *listedArchive, base string) {
	if base == "" {
		v.warn(CodeSerialization, sectionSerialization, "", "the bag is not in a folder of its own in the archive")
		return
	}
	for top, dir := range l.paths.isDir {
		if strings.Contains(top, "/") || top == base {
			continue
		}
		switch {
		case isNoise(top):
			v.warn(CodeSerialization, sectionSerialization, top, "beside the bag; passed over")
		case dir && l.paths.isDir[top+"/"+payloadDir]:
			v.fail(CodeSerialization, sectionSerialization, top, "the archive holds more than one bag")
		default:
			v.fail(CodeSerialization, sectionSerialization, top, "stands beside the bag's folder in the archive")
		}
	}
	if stem := archiveStem(l.name); stem != base {
		v.warn(CodeBaseName, sectionSerialization, "", "the archive holds "+encoded(base)+", where its name lets expect "+encoded(stem))
	}
}

// archiveStem is an archive's name without what names its format.
func archiveStem(name string) string {
	if formatOfName(name) == None {
		return name
	}
	return FolderName(name)
}

// withinBase looks a bag's paths up below its folder in the archive.
type withinBase struct {
	contents
	base string
}

func (b *withinBase) open(p string) (io.ReadCloser, error) {
	return b.contents.open(path.Join(b.base, p))
}

func (b *withinBase) hash(ctx context.Context, plan []hashItem, o HashOptions, each func(Hashed) error) error {
	for i := range plan {
		plan[i].path = path.Join(b.base, plan[i].path)
	}
	return b.contents.hash(ctx, plan, o, each)
}

// unreadBag is an archive that could not be listed.
type unreadBag struct{ f *os.File }

func (b *unreadBag) open(p string) (io.ReadCloser, error) {
	return nil, &fs.PathError{Op: "open", Path: layout.EncodePath(p), Err: fs.ErrNotExist}
}

func (b *unreadBag) hash(context.Context, []hashItem, HashOptions, func(Hashed) error) error {
	return nil
}

func (b *unreadBag) close() error { return b.f.Close() }
