package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"

	"bagpipe/bags/archive/internal/child"
	"bagpipe/bags/archive/internal/codepage"
	"bagpipe/bags/archive/internal/compress"
	"bagpipe/bags/archive/internal/frames"
	"bagpipe/bags/archive/internal/rars"
	"bagpipe/bags/archive/internal/sevens"
	"bagpipe/bags/archive/internal/volume"
	"bagpipe/bags/files"
)

// readElsewhere takes the members of a 7z or rar that another process reads.
func readElsewhere(ctx context.Context, src *volume.File, archive string, s *sink) error {
	vols, err := volume.Open(src.F, archive, s.report.Format == SevenZip)
	if err != nil {
		return err
	}
	defer vols.Close()
	var stored []string
	if s.report.Format == Rar {
		stored, err = rars.Survey(vols, s.o.Limits.Files, &s.Notes)
	} else {
		stored, err = sevens.Survey(vols, &s.Notes)
	}
	if err != nil {
		return err
	}
	s.from = readFrom{vols.Base, vols.Bytes()}
	if !s.before.within {
		s.input = s.from.bytes
	}
	names, note, err := codepage.New(s.o.Names, stored)
	if err != nil {
		return err
	}
	if note != "" {
		s.Warn("", note)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p, err := child.Start(ctx, child.Plan{Format: string(s.report.Format), Memory: s.o.Limits.Memory, Data: !s.onlyNames(), Volumes: vols.Size}, vols)
	if err != nil {
		return fmt.Errorf("unpack %s: start the archive's reader: %w", s.Archive, err)
	}
	out, ctx := s.stream(ctx)
	err = out.wait(takeMembers(ctx, out, p.Frames, names, s))
	cancel()
	if died := p.Wait(); errors.Is(err, frames.ErrCut) {
		return child.CutShort(died, s.o.Limits.Memory, &s.Notes)
	}
	return err
}

// takeMembers admits and writes what the reading process delivers.
func takeMembers(ctx context.Context, out *stream, f *frames.Reader, names codepage.Namer, s *sink) error {
	for {
		h, err := f.Member()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return s.ofReader(err)
		}
		h.Name = []byte(names.Decode(string(h.Name)))
		err = s.pass(s.takeMember(ctx, out, f, h))
		if err != nil {
			return s.ofReader(err)
		}
		if _, err := io.Copy(io.Discard, f); err != nil { // what a refused member left
			return s.ofReader(err)
		}
	}
}

// ofReader gives an error of the reading process its archive's name.
func (s *sink) ofReader(err error) error {
	var e *files.Error
	var m frames.Fault
	switch {
	case errors.As(err, &e):
		e.Archive = s.Archive
		return e
	case errors.As(err, &m):
		return fmt.Errorf("unpack %s: %w", s.Archive, m)
	}
	return err
}

func (s *sink) takeMember(ctx context.Context, out *stream, f *frames.Reader, h frames.Head) error {
	name := string(h.Name)
	if h.Rule != "" {
		return s.Broken(name, h.Rule, h.Detail, nil)
	}
	p, err := s.admit(name, h.Folder)
	if err != nil {
		return err
	}
	m := member{name: name, path: p, mode: h.Mode, at: saneTime(h.Time), size: h.Size}
	if m.size < -1 {
		return s.Broken(name, files.RuleSize, "the archive gives an impossible size", nil)
	}
	s.saw(m, h.Folder)
	if h.Folder {
		return s.addFolder(p, m.at)
	}
	if rule, detail := s.o.Limits.OverFile(m.size); rule != "" {
		return s.Broken(name, rule, detail, nil)
	}
	if s.onlyNames() {
		return s.charge(m, max(m.size, 0), 1)
	}
	if err := s.mkdir(path.Dir(p)); err != nil {
		return err
	}
	var r io.Reader = f
	if h.Sum != nil {
		r = compress.NewSumReader(f, *h.Sum)
	}
	return out.add(ctx, m, r)
}

// Reader does the work of a process that reads one 7z or rar, if this is one: ok is then
// true, and the program must end with the code at once. Every program that unpacks 7z or
// rar begins with Reader; in any other process it does nothing.
func Reader() (code int, ok bool) { return child.Main() }
