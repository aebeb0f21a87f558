package recognise

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"bagpipe/layout"
)

// MarkerName is the file in a folder that says how what lies there is recognised.
const MarkerName = "metadata.rule"

// marker is a metadata.rule: the type of the folder, which stands for its name, and
// the rules for the files and folders in it, if it names any.
type marker struct {
	kind    string
	files   []named
	folders []named
}

// named is a rule's name and where it stands.
type named struct {
	name         string
	line, column int
}

// plugins reports whether it names rules, and so the keywords' are not asked.
func (m *marker) plugins() bool { return m != nil && len(m.files)+len(m.folders) > 0 }

// readMarker reads a folder's metadata.rule; nil when there is none. What is wrong
// with it is a *layout.FileError that names the file as shown.
func readMarker(dir, shown string) (*marker, error) {
	r, err := openMarker(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	}
	shown = path.Join(layout.EncodePath(shown), MarkerName)
	if errors.Is(err, syscall.ELOOP) {
		return nil, &layout.FileError{File: shown, Text: "is a link; expected a file"}
	}
	if err != nil {
		return nil, &layout.FileError{File: shown, Text: "cannot be read: " + cause(err).Error()}
	}
	defer r.Close()
	if info, err := r.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, &layout.FileError{File: shown, Text: "is no regular file"}
	}
	data, err := io.ReadAll(io.LimitReader(r, maxRuleFile+1))
	switch {
	case err != nil:
		return nil, &layout.FileError{File: shown, Text: "cannot be read: " + cause(err).Error()}
	case len(data) > maxRuleFile:
		return nil, &layout.FileError{File: shown, Text: fmt.Sprintf("is larger than %d bytes", maxRuleFile)}
	}
	return parseMarker(shown, data)
}

// marks are the rule files of the folders that several candidates lie in, each read once. It
// may be used by several goroutines.
type marks struct {
	lacks func(dir string) bool // a folder is known to have none

	mu sync.Mutex // guards by
	by map[string]func() (*marker, error)
}

// read gives a folder's rule file.
func (s *marks) read(dir, shown string) (*marker, error) {
	if s == nil {
		return readMarker(dir, shown)
	}
	if s.lacks(dir) {
		return nil, nil
	}
	s.mu.Lock()
	once := s.by[dir]
	if once == nil {
		once = sync.OnceValues(func() (*marker, error) { return readMarker(dir, shown) })
		s.by[dir] = once
	}
	s.mu.Unlock()
	return once()
}

// openMarker opens a folder's metadata.rule; it follows no link, and does not wait for a pipe.
func openMarker(dir string) (*os.File, error) {
	return os.OpenFile(filepath.Join(dir, MarkerName), os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
}

// HashMarker writes to h what tells a folder's metadata.rule from another one: its bytes, or why
// they cannot be read. It reports whether there is such a file.
func HashMarker(h io.Writer, dir string) bool {
	f, err := openMarker(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	if err == nil {
		defer f.Close()
		var info fs.FileInfo
		if info, err = f.Stat(); err == nil && !info.Mode().IsRegular() {
			err = errors.New("no regular file")
		}
	}
	if err == nil {
		_, err = io.Copy(h, io.LimitReader(f, maxRuleFile+1))
	}
	if err != nil {
		io.WriteString(h, "\x00"+cause(err).Error())
	}
	return true
}

// The elements that a metadata.rule may have, by what they stand in.
var markerElements = map[string][]string{
	"":                  {"root"},
	"root":              {"type", "plugins"},
	"root/plugins":      {"file", "dir"},
	"root/plugins/file": {"plugin"},
	"root/plugins/dir":  {"plugin"},
}

// parseMarker reads a metadata.rule strictly: a misspelt element would be rules that
// are not asked.
func parseMarker(shown string, data []byte) (*marker, error) {
	d := newDecoder(data)
	p := &markerParser{d: d, shown: shown}
	for {
		line, column := d.InputPos()
		t, err := d.Token()
		if errors.Is(err, io.EOF) {
			return p.end()
		}
		if err == nil {
			err = p.take(t, line, column)
		} else {
			err = brokenXML(d, err)
		}
		var at *placedError
		if errors.As(err, &at) {
			return nil, &layout.FileError{File: shown, Line: at.line, Column: at.column, Text: at.text}
		}
		if err != nil {
			return nil, err
		}
	}
}

type markerParser struct {
	d     *xml.Decoder
	shown string
	m     marker
	path  []string
	text  strings.Builder
	begun [2]int // line and column of the element that is open
	typed bool
}

func (p *markerParser) take(t xml.Token, line, column int) error {
	switch t := t.(type) {
	case xml.StartElement:
		return p.open(t, line, column)
	case xml.EndElement:
		return p.close()
	case xml.CharData:
		if p.leaf() {
			p.text.Write(t)
		} else if text := strings.TrimSpace(string(t)); text != "" {
			return &placedError{line, column, fmt.Sprintf("%q stands outside of type and plugin", short(text))}
		}
	case xml.Directive:
		return &placedError{line, column, "a document type is not read here; entities are never expanded"}
	}
	return nil
}

func (p *markerParser) leaf() bool {
	if len(p.path) == 0 {
		return false
	}
	last := p.path[len(p.path)-1]
	return last == "type" || last == "plugin"
}

func (p *markerParser) open(t xml.StartElement, line, column int) error {
	within := strings.Join(p.path, "/")
	known := false
	for _, name := range markerElements[within] {
		known = known || name == t.Name.Local && t.Name.Space == ""
	}
	switch {
	case !known && len(markerElements[within]) == 0:
		return &placedError{line, column, fmt.Sprintf("unknown element <%s>; %s holds text alone", t.Name.Local, within)}
	case !known:
		return &placedError{line, column, fmt.Sprintf("unknown element <%s>; expected <%s>", t.Name.Local, strings.Join(markerElements[within], "> or <"))}
	case t.Name.Local == "type" && p.typed:
		return &placedError{line, column, "a second <type>; expected one"}
	}
	p.typed = p.typed || t.Name.Local == "type"
	p.path = append(p.path, t.Name.Local)
	p.text.Reset()
	p.begun = [2]int{line, column}
	return nil
}

func (p *markerParser) close() error {
	text := strings.TrimSpace(p.text.String())
	if p.leaf() && text == "" {
		return &placedError{p.begun[0], p.begun[1], fmt.Sprintf("<%s> is empty", p.path[len(p.path)-1])}
	}
	one := named{text, p.begun[0], p.begun[1]}
	switch strings.Join(p.path, "/") {
	case "root/type":
		p.m.kind = text
	case "root/plugins/file/plugin":
		p.m.files = append(p.m.files, one)
	case "root/plugins/dir/plugin":
		p.m.folders = append(p.m.folders, one)
	}
	p.path = p.path[:len(p.path)-1]
	p.text.Reset()
	return nil
}

func (p *markerParser) end() (*marker, error) {
	if !p.typed {
		return nil, &layout.FileError{File: p.shown, Line: 1, Column: 1, Text: "expected <root> with <type>: the type of what lies in the folder"}
	}
	return &p.m, nil
}
