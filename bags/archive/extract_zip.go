package archive

import (
	"context"
	"path"
	"sync/atomic"

	"bagpipe/bags/archive/internal/compress"
	"bagpipe/bags/archive/internal/volume"
	"bagpipe/bags/archive/internal/zips"
	"bagpipe/bags/files"

	"github.com/klauspost/compress/zip"
	"golang.org/x/sync/errgroup"
)

// unzip checks the whole directory before a byte is written, and then unpacks
// members on all cores.
func unzip(ctx context.Context, src *volume.File, size int64, s *sink) error {
	z, entries, err := zips.Open(src, size, zips.Options{Files: s.o.Limits.Files, Memory: s.o.Limits.Memory, Names: s.o.Names}, &s.Notes)
	if err != nil {
		return err
	}
	members, err := planZip(z.File, entries, s)
	if err != nil {
		return err
	}
	if s.onlyNames() {
		s.peekZip(members)
		return nil
	}
	for _, f := range members {
		if err := s.mkdir(path.Dir(f.path)); err != nil {
			return err
		}
	}
	s.meter.done.TotalFiles = int64(len(members))
	for _, f := range members {
		s.meter.done.TotalBytes += f.size
	}
	return s.writeAll(ctx, members)
}

type zipFile struct {
	member
	file *zip.File
}

// planZip admits every member and makes the folders that stand for themselves.
func planZip(all []*zip.File, entries []zips.Entry, s *sink) ([]zipFile, error) {
	var members []zipFile
	var total int64
	for i, f := range all {
		m, dir, err := s.admitZip(f, entries[i])
		if err == nil && !dir {
			if total += m.size; total < 0 {
				return nil, s.Broken(m.name, files.RuleSize, "the archive gives an impossible size", nil)
			}
			if rule, detail := s.o.Limits.overBytes(total, s.input); rule != "" {
				return nil, s.Broken(m.name, rule, detail, nil)
			}
			members = append(members, zipFile{m, f})
		}
		if err := s.pass(err); err != nil {
			return nil, err
		}
	}
	return members, nil
}

func (s *sink) admitZip(f *zip.File, e zips.Entry) (m member, dir bool, err error) {
	mode, dir, err := zips.CheckMember(f, e, &s.Notes)
	if err != nil {
		return m, dir, err
	}
	m = member{name: e.Text, mode: mode, at: saneTime(f.Modified), size: int64(f.UncompressedSize64)}
	if m.path, err = s.admit(m.name, dir); err != nil {
		return m, dir, err
	}
	if m.size < 0 {
		return m, dir, s.Broken(m.name, files.RuleSize, "the archive gives an impossible size", nil)
	}
	s.saw(m, dir)
	if dir {
		return m, dir, s.addFolder(m.path, m.at)
	}
	if s.onlyNames() {
		s.meter.done.Bytes += m.size
	}
	rule, detail := s.o.Limits.OverFile(m.size)
	if rule != "" {
		return m, dir, s.Broken(m.name, rule, detail, nil)
	}
	return m, dir, nil
}

// writeAll unpacks on s.o.Workers goroutines. Each takes the next member, so a
// large one holds up nothing but itself.
func (s *sink) writeAll(ctx context.Context, members []zipFile) error {
	g, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	for range min(s.o.Workers, len(members)) {
		g.Go(func() error {
			var pl *files.Creator
			if s.root != nil {
				pl = &files.Creator{Root: s.root}
				defer pl.Close()
			}
			for {
				i := int(next.Add(1)) - 1
				if i >= len(members) {
					return nil
				}
				if err := s.pass(s.writeZip(ctx, pl, members[i])); err != nil {
					return err
				}
			}
		})
	}
	return g.Wait()
}

func (s *sink) writeZip(ctx context.Context, pl *files.Creator, f zipFile) error {
	r, err := f.file.Open()
	if err != nil {
		return compress.Broken(&s.Notes, f.name, err)
	}
	defer r.Close()
	if f.file.CRC32 != 0 {
		return s.write(ctx, pl, f.member, r)
	}
	// The library takes a check sum of zero for "not given"; it is the sum of an
	// empty file, and of nearly nothing else.
	return s.write(ctx, pl, f.member, compress.NewSumReader(r, 0))
}
