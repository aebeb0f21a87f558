package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// unpack compares archive extract with unzip and bsdtar, on what compresses about
// three to one. They do not wait for the disk, so --no-sync stands beside them, and
// the durable form beside them with a sync.
func (b *bench) unpack(ctx context.Context, top string) error {
	for _, s := range []struct {
		name  string
		shape shape
	}{{"10,000 small files", shape{10_000, 8 << 10}}, {"4 large files", shape{4, 64 << 20}}} {
		payload := filepath.Join(top, "payload")
		if err := s.shape.writeText(payload); err != nil {
			return err
		}
		for _, format := range []string{"zip", "tar.gz"} {
			archive := filepath.Join(top, "x."+format)
			if _, err := measured(ctx, top, []string{b.program, "archive", "pack", payload, archive, "--no-sync", "--quiet"}); err != nil {
				return err
			}
			if err := b.unpackOne(ctx, top, archive, format, s.name); err != nil {
				return err
			}
		}
		if err := os.RemoveAll(payload); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) unpackOne(ctx context.Context, top, archive, format, what string) error {
	out := filepath.Join(top, "out")
	clean := func() error { return os.RemoveAll(out) }
	ours := command("bagpipe archive extract --no-sync", top, b.program, "archive", "extract", archive, out, "--no-sync", "--quiet")
	durable := command("bagpipe archive extract", top, b.program, "archive", "extract", archive, out, "--quiet")
	for _, r := range []*row{ours, durable} {
		r.ours, r.after = true, clean
	}
	peer := func(name, command string) *row {
		if _, err := exec.LookPath(name); err != nil {
			return nil
		}
		return script(name, top, "mkdir out && cd out && "+command+" "+archive, clean)
	}
	synced := func(r *row, command string) *row {
		if r == nil {
			return nil
		}
		return script(r.name+", sync -f", top, "mkdir out && cd out && "+command+" "+archive+" && sync -f .", clean)
	}
	bsdtar := peer("bsdtar", "bsdtar -xf")
	unzip := (*row)(nil)
	if format == "zip" {
		unzip = peer("unzip", "unzip -qo")
	}
	syncedTar, syncedZip := synced(bsdtar, "bsdtar -xf"), synced(unzip, "unzip -qo")
	rows := present(unzip, bsdtar, ours, syncedZip, syncedTar, durable)
	if err := interleaved(ctx, rows, b.rounds); err != nil {
		return err
	}
	report(fmt.Sprintf("unpack: %s of %s", format, what), rows)
	want := 1.0
	if format == "tar.gz" && what == "4 large files" {
		want = 0.85
	}
	beside(ours, want, unzip, bsdtar)
	if format == "zip" && what == "10,000 small files" {
		beside(ours, 2, unzip)
	}
	beside(durable, want, syncedZip, syncedTar)
	return os.Remove(archive)
}
