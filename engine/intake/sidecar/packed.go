package sidecar

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"bagpipe/bags/archive"
	"bagpipe/bags/files"
	"bagpipe/engine/inbox"
	"bagpipe/layout"
)

// The rules are: of an archive bag-info.txt, metadata.csv and metadata.json are read that
// stand at its top, or in the folder that alone holds everything, while it is listed: by
// all rules of unpacking, in memory, and nothing is unpacked. A compressed tar has to be
// read whole for it, for so long as packedTime; of a 7z or rar only the names are known.
// What could not be read is told in the item (unreadError) and keeps nothing out. An
// archive that is damaged or hostile has none: its unpacking says what is wrong.

const (
	packedTime  = 2 * time.Minute
	packedNames = 200_000 // that a table about files is compared with
)

// packed is what is known of an archive with side-cars.
type packed struct {
	top   string // the folder that alone holds everything, with a slash behind it, or ""
	names map[string]bool
	more  bool // there are more than packedNames
}

func (p *packed) holds(path string) bool {
	return p.more || p.names[path] || p.names[p.top+path]
}

// UnreadError is about side-cars that cannot be read where they are, through no fault.
type UnreadError struct{ file, why string }

func (u *UnreadError) Error() string { return layout.EncodePath(u.file) + ": " + u.why }

// packedSidecars are the names, in the order in which they are read.
func packedSidecars() []string { return []string{"bag-info.txt", "metadata.csv", "metadata.json"} }

// archive tells the format of a drop that is one.
func (r CarReader) archive(t inbox.Taken) (archive.Format, error) {
	if t.Kind != inbox.File {
		return archive.None, nil
	}
	return archive.Sniff(t.Path)
}

// packed reads the side-cars in an archive.
func (r CarReader) packed(ctx context.Context, t inbox.Taken, format archive.Format) ([]file, error) {
	if format == archive.None {
		return nil, nil
	}
	p := &packedReader{packed: packed{names: map[string]bool{}}, found: map[string][]byte{}}
	limits := r.Limits
	limits.Time = packedTime
	in, err := archive.Inspect(ctx, t.Path, archive.InspectOptions{Limits: limits, Member: p.member,
		Peek: &archive.Peek{Max: maxSidecar, Want: p.wants, Got: func(path string, data []byte) { p.found[path] = data }}})
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(in.Problems, func(e *files.Error) bool { return e.Rule == files.RuleTime }) {
		return nil, &UnreadError{t.Name, fmt.Sprintf("was not looked through for side-cars, as that takes more than %s; put them beside it", packedTime)}
	}
	if len(in.Problems) > 0 {
		return nil, nil
	}
	return p.sidecars(t.Name, format)
}

// packedReader gathers them while an archive is listed. Beyond those at the top it keeps
// those of one folder, the first: were there another, neither would hold everything.
type packedReader struct {
	packed
	found   map[string][]byte
	first   string // the folder that the first member is in
	several bool   // not everything is in it
}

func (p *packedReader) member(m archive.Member) {
	dir, _, inside := strings.Cut(m.Path, "/")
	switch {
	case m.Folder && !inside:
		dir, inside = m.Path, true
	case !inside:
		p.several = true
	}
	if inside && p.first == "" {
		p.first = dir + "/"
	}
	if inside && p.first != dir+"/" {
		p.several = true
	}
	if m.Folder {
		return
	}
	if len(p.names) >= packedNames {
		p.more = true
		return
	}
	p.names[m.Path] = true
}

func (p *packedReader) wants(path string) bool {
	rest, inFirst := strings.CutPrefix(path, p.first)
	return slices.Contains(packedSidecars(), path) || p.first != "" && inFirst && slices.Contains(packedSidecars(), rest)
}

func (p *packedReader) sidecars(archive string, format archive.Format) (cars []file, err error) {
	if !p.several {
		p.top = p.first
	}
	for _, name := range packedSidecars() {
		path := p.top + name
		data, found := p.found[path]
		if !found && !p.names[path] {
			continue
		}
		if !found {
			return nil, &UnreadError{archive + "/" + path, fmt.Sprintf("is not read within a %s; put it beside it", format)}
		}
		cars = append(cars, file{name: archive + "/" + path, within: &p.packed, data: data})
	}
	return cars, nil
}

// packedBytes are those that were read from the archive.
func (c file) packedBytes() ([]byte, error) {
	switch {
	case c.data == nil:
		return nil, &SidecarError{c.name, fmt.Sprintf("is larger than %d bytes, or cannot be read", maxSidecar)}
	case !utf8.Valid(c.data) && !strings.HasSuffix(c.name, ".txt"):
		return nil, &SidecarError{c.name, notUTF8(c.data)}
	}
	return bytes.TrimPrefix(c.data, []byte("\ufeff")), nil
}
