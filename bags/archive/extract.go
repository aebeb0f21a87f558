package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"bagpipe/bags/archive/internal/codepage"
	"bagpipe/bags/archive/internal/volume"
	"bagpipe/bags/files"
)

// ExtractOptions say how to unpack. The zero value is useful.
type ExtractOptions struct {
	Limits   Limits
	Workers  int                  // members unpacked at once, where the format allows it; default the cores
	Names    string               // one of CodePages; default: guessed
	Nested   int                  // archives within archives are unpacked in place, down to this depth; default none
	NoSync   bool                 // of ExtractTo: the caller syncs the folder
	Progress func(files.Progress) // calls do not overlap
}

// CodePages lists the names that ExtractOptions.Names takes.
func CodePages() []string { return codepage.Names() }

// Extracted says what was unpacked.
type Extracted struct {
	Format   Format   `json:"format"`
	Files    int64    `json:"files"`
	Folders  int64    `json:"folders"`
	Bytes    int64    `json:"bytes"`
	Nested   int64    `json:"nested,omitempty"` // archives unpacked in place
	Warnings []string `json:"warnings,omitempty"`
}

// Extract unpacks the archive into dir, which must exist and be empty. A fault
// of the archive is an *Error; dir then holds a part and is to be thrown
// away. Nothing outside of dir is touched. Nothing is synced.
func Extract(ctx context.Context, archive, dir string, o ExtractOptions) (_ Extracted, err error) {
	root, err := openEmpty(dir)
	if err != nil {
		return Extracted{}, fmt.Errorf("unpack %s: %w", archive, err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	ctx, cancel := o.Limits.WithDefaults().clock(ctx)
	defer cancel()
	x, volumes, err := extractInto(ctx, archive, root, o, nil)
	if err == nil && o.Nested > 0 {
		n := &nest{root: root, o: o, outer: filepath.Base(archive), input: volumes.bytes, files: x.Files + x.Folders, bytes: x.Bytes, x: &x}
		err = n.run(ctx)
	}
	if err != nil {
		return Extracted{}, overTime(ctx, filepath.Base(archive), err)
	}
	return x, nil
}

// readFrom names the files of an archive, and counts their bytes.
type readFrom struct {
	names []string // its files, where there are several
	bytes int64
}

// extractInto unpacks one archive; prepare, for one within another, takes what was
// unpacked before off its limits.
func extractInto(ctx context.Context, archive string, root *os.Root, o ExtractOptions, prepare func(*sink)) (Extracted, readFrom, error) {
	f, err := os.OpenFile(archive, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return Extracted{}, readFrom{}, fmt.Errorf("unpack: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return Extracted{}, readFrom{}, fmt.Errorf("unpack: %w", err)
	}
	if !info.Mode().IsRegular() {
		return Extracted{}, readFrom{}, fmt.Errorf("unpack %s: not a regular file", archive)
	}
	s := newSink(root, filepath.Base(archive), info.Size(), o)
	if prepare != nil {
		prepare(s)
	}
	if err := read(ctx, &volume.File{F: f}, archive, info.Size(), s); err != nil {
		return Extracted{}, readFrom{}, err
	}
	x, err := s.finish()
	return x, s.from, err
}

// read recognises the archive and takes its members into s. A disk that fails is
// told from an archive that is damaged.
func read(ctx context.Context, src *volume.File, archive string, size int64, s *sink) error {
	s.report.Format = sniff(src, filepath.Base(archive))
	if _, err := src.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("unpack %s: %w", archive, err)
	}
	err := unpack(ctx, src, archive, size, s)
	if cause := src.Failure(); cause != nil {
		return fmt.Errorf("unpack %s: %w", archive, cause)
	}
	return err
}

func unpack(ctx context.Context, src *volume.File, archive string, size int64, s *sink) error {
	switch s.report.Format {
	case Zip:
		return unzip(ctx, src, size, s)
	case Tar, TarGzip, TarZstd, TarBzip2, TarXz, TarLz4:
		return untar(ctx, src, s)
	case SevenZip, Rar:
		return readElsewhere(ctx, src, archive, s)
	}
	return s.Broken("", files.RuleNotArchive, "none of the archives that are unpacked: zip, tar (plain, gz, bz2, xz, zst, lz4), 7z, rar", nil)
}

func openEmpty(dir string) (*os.Root, error) {
	names, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	if len(names) > 0 {
		return nil, fmt.Errorf("folder %s is not empty", dir)
	}
	return os.OpenRoot(dir)
}
