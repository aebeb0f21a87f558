package bags

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
)

// readElsewhere takes the members of a 7z or rar that another process reads.
func readElsewhere(ctx context.Context, src *source, archive string, s *sink) error {
	vols, err := openVolumes(src.f, archive, s.report.Format == SevenZip)
	if err != nil {
		return err
	}
	defer vols.close()
	var stored []string
	if s.report.Format == Rar {
		stored, err = surveyRar(vols, s.o.Limits.Files, &s.notes)
	} else {
		stored, err = surveySevenZip(vols, &s.notes)
	}
	if err != nil {
		return err
	}
	s.from = readFrom{vols.base, vols.bytes()}
	if !s.before.within {
		s.input = s.from.bytes
	}
	names, note, err := newNamer(s.o.Names, stored)
	if err != nil {
		return err
	}
	if note != "" {
		s.warn("", note)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p, err := startReader(ctx, readerPlan{string(s.report.Format), s.o.Limits.Memory, !s.onlyNames(), vols.size}, vols)
	if err != nil {
		return fmt.Errorf("unpack %s: start the archive's reader: %w", s.archive, err)
	}
	out := s.stream(ctx)
	err = out.wait(takeMembers(out, p.frames, names, s))
	cancel()
	if died := p.wait(); errors.Is(err, errCut) {
		return cutShort(died, s.o.Limits.Memory, &s.notes)
	}
	return err
}

// takeMembers admits and writes what the reading process delivers.
func takeMembers(out *stream, f *frameReader, names namer, s *sink) error {
	for {
		h, err := f.member()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return s.ofReader(err)
		}
		h.Name = []byte(names.decode(string(h.Name)))
		err = s.pass(s.takeMember(out, f, h))
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
	var e *Error
	var m readerFault
	switch {
	case errors.As(err, &e):
		e.Archive = s.archive
		return e
	case errors.As(err, &m):
		return fmt.Errorf("unpack %s: %w", s.archive, m)
	}
	return err
}

func (s *sink) takeMember(out *stream, f *frameReader, h frameHead) error {
	name := string(h.Name)
	if h.Rule != "" {
		return s.broken(name, h.Rule, h.Detail, nil)
	}
	p, err := s.admit(name, h.Folder)
	if err != nil {
		return err
	}
	m := member{name: name, path: p, mode: h.Mode, at: saneTime(h.Time), size: h.Size}
	if m.size < -1 {
		return s.broken(name, RuleSize, "the archive gives an impossible size", nil)
	}
	s.saw(m, h.Folder)
	if h.Folder {
		return s.addFolder(p, m.at)
	}
	if rule, detail := s.o.Limits.overFile(m.size); rule != "" {
		return s.broken(name, rule, detail, nil)
	}
	if s.onlyNames() {
		return s.charge(m, max(m.size, 0), 1)
	}
	if err := s.mkdir(path.Dir(p)); err != nil {
		return err
	}
	var r io.Reader = f
	if h.Sum != nil {
		r = newSumReader(f, *h.Sum)
	}
	return out.add(m, r)
}

// Reader does the work of a process that reads one 7z or rar, if this is one: ok is then
// true, and the program must end with the code at once. Every program that unpacks 7z or
// rar begins with Reader; in any other process it does nothing.
func Reader() (code int, ok bool) { return readerMain() }
