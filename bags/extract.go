package bags

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
)

// ExtractOptions say how to unpack. The zero value is useful.
type ExtractOptions struct {
	Limits   Limits
	Workers  int            // members unpacked at once, where the format allows it; default the cores
	Progress func(Progress) // calls do not overlap
}

// Extracted says what was unpacked.
type Extracted struct {
	Format   Format   `json:"format"`
	Files    int64    `json:"files"`
	Folders  int64    `json:"folders"`
	Bytes    int64    `json:"bytes"`
	Warnings []string `json:"warnings,omitempty"`
}

// Extract unpacks the archive into dir, which must exist and be empty. What is
// wrong with the archive is an *Error; dir then holds a part and is to be thrown
// away. Nothing outside of dir is touched. Nothing is synced.
func Extract(ctx context.Context, archive, dir string, o ExtractOptions) (_ Extracted, err error) {
	root, err := openEmpty(dir)
	if err != nil {
		return Extracted{}, fmt.Errorf("unpack %s: %w", archive, err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	f, err := os.Open(archive)
	if err != nil {
		return Extracted{}, fmt.Errorf("unpack: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return Extracted{}, fmt.Errorf("unpack: %w", err)
	}
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	src := &source{f: f}
	s := newSink(root, baseName(archive), info.Size(), o)
	s.report.Format = sniff(src, s.archive)
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return Extracted{}, fmt.Errorf("unpack %s: %w", archive, err)
	}
	err = unpack(ctx, src, info.Size(), s)
	if cause := src.failure(); cause != nil {
		return Extracted{}, fmt.Errorf("unpack %s: %w", archive, cause)
	}
	if err != nil {
		return Extracted{}, err
	}
	return s.finish()
}

func unpack(ctx context.Context, src *source, size int64, s *sink) error {
	switch s.report.Format {
	case Zip:
		return unzip(ctx, src, size, s)
	case Tar:
		return untar(ctx, src, s)
	case TarGzip:
		return untarGzip(ctx, src, s)
	case TarZstd:
		return untarZstd(ctx, src, s)
	}
	return s.broken("", RuleNotArchive, "neither zip nor tar, plain or compressed", nil)
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
