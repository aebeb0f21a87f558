package bagtool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"bagpipe/bags/archive"
	"bagpipe/bags/files"
	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/layout"
)

// Archive is the tool for archives.
type Archive struct {
	List    archiveListCmd    `cmd:"" help:"List the members of an archive. Exit code 1: it could not be unpacked."`
	Check   archiveCheckCmd   `cmd:"" help:"Read archives to the last byte and tell their defects. Exit code 0: they can be unpacked, 1: not."`
	Extract archiveExtractCmd `cmd:"" aliases:"unpack" help:"Unpack an archive into a new folder."`
	Pack    archivePackCmd    `cmd:"" help:"Pack a folder or a file into a new archive."`
}

// sizeFlag is a number of bytes: 4096, 64MiB, 10GiB.
type sizeFlag int64

// UnmarshalText reads the flag.
func (n *sizeFlag) UnmarshalText(b []byte) error {
	v, err := layout.ParseSize(string(b))
	*n = sizeFlag(v)
	return err
}

// readFlags are common to the commands that read an archive.
type readFlags struct {
	MaxFiles     int64         `placeholder:"N" help:"Refuse more members than this; 1000000."`
	MaxBytes     sizeFlag      `placeholder:"SIZE" help:"Refuse more bytes than this in all; 1TiB."`
	MaxFileBytes sizeFlag      `placeholder:"SIZE" help:"Refuse a larger file than this; 1TiB."`
	MaxRatio     int64         `placeholder:"N" help:"Refuse more than this many bytes for one packed, beyond 64 MiB; 200."`
	MaxPath      int           `placeholder:"N" help:"Refuse longer paths than this; 2048."`
	MaxDepth     int           `placeholder:"N" help:"Refuse more folders below one another than this; 64."`
	MaxMemory    sizeFlag      `placeholder:"SIZE" help:"Refuse archives that take more memory than this to decompress; 1GiB."`
	MaxTime      time.Duration `placeholder:"TIME" help:"Give up after this; 12h."`
	Names        string        `placeholder:"PAGE" help:"The code page of names that are not UTF-8, as cp437 or windows-1252; raw keeps their bytes. Default: guessed."`
	JSON         bool          `name:"json" help:"Print one JSON object a line."`
}

func (f readFlags) limits() archive.Limits {
	return archive.Limits{
		Files: f.MaxFiles, Bytes: int64(f.MaxBytes), FileBytes: int64(f.MaxFileBytes), Ratio: f.MaxRatio,
		PathLength: f.MaxPath, Depth: f.MaxDepth, Memory: int64(f.MaxMemory), Time: f.MaxTime,
	}
}

// Validate makes a wrong value a mistake of usage.
func (f readFlags) Validate() error {
	if f.MaxFiles < 0 || f.MaxRatio < 0 || f.MaxPath < 0 || f.MaxDepth < 0 {
		return fmt.Errorf("a limit is a number from 0 (the default) up")
	}
	return checkPage(f.Names)
}

func checkPage(page string) error {
	for _, p := range append(archive.CodePages(), "") {
		if strings.EqualFold(p, page) {
			return nil
		}
	}
	return fmt.Errorf("no code page %q; there are %s", page, strings.Join(archive.CodePages(), ", "))
}

type archiveListCmd struct {
	Archive   string `arg:"" help:"The archive."`
	readFlags `embed:""`
}

func (c *archiveListCmd) Run(ctx context.Context, on *screen.Screen) error {
	if err := wantFile(c.Archive); err != nil {
		return err
	}
	o := archive.InspectOptions{Limits: c.limits(), Names: strings.ToLower(c.Names)}
	o.Member = func(m archive.Member) { archiveMember(on, m, c.JSON) }
	in, err := archive.Inspect(ctx, c.Archive, o)
	if err != nil {
		return err
	}
	return inspected(on, c.Archive, in, c.JSON)
}

func archiveMember(on *screen.Screen, m archive.Member, json bool) {
	p := layout.EncodePath(m.Path)
	if m.Folder {
		p += "/"
	}
	if json {
		on.Event("member", map[string]any{"path": p, "folder": m.Folder, "bytes": m.Size, "mode": m.Mode.String(), "time": jsonTime(m.Time)})
		return
	}
	size := fmt.Sprint(m.Size)
	if m.Size < 0 {
		size = "?"
	}
	fmt.Fprintf(on.Out, "%12s  %-19s  %s\n", size, screen.When(m.Time), p)
}

func jsonTime(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format(time.RFC3339)
}

// inspected prints what was found; problems make the exit code.
func inspected(on *screen.Screen, archive string, in archive.Inspected, json bool) error {
	for _, w := range in.Warnings {
		archiveWarning(on, archive, w, json)
	}
	for _, p := range in.Problems {
		if json {
			on.Event("problem", problemOf(archive, p))
		} else {
			fmt.Fprintf(on.Out, "error: %v\n", p)
		}
	}
	sound := len(in.Problems) == 0
	if json {
		on.Event("done", map[string]any{"archive": archive, "format": in.Format, "files": in.Files, "folders": in.Folders,
			"bytes": in.Bytes, "warnings": len(in.Warnings), "problems": len(in.Problems), "sound": sound})
	} else {
		fmt.Fprintf(on.Out, "%s: %s: %s, %s, %s; %s, %s\n", archive, cmp.Or(string(in.Format), "no archive"), screen.Count(in.Files, "file"),
			screen.Count(in.Folders, "folder"), screen.Count(in.Bytes, "byte"), screen.Count(len(in.Problems), "error"), screen.Count(len(in.Warnings), "warning"))
	}
	if !sound {
		return screen.ExitError
	}
	return nil
}

// problemOf names the archive as it was given, or the one within it.
func problemOf(given string, p *files.Error) map[string]any {
	folder := strings.TrimSuffix(given, filepath.Base(given))
	return map[string]any{"archive": layout.EncodePath(folder + p.Archive), "member": layout.EncodePath(p.Member), "rule": p.Rule, "text": p.Detail}
}

func archiveWarning(on *screen.Screen, archive, text string, json bool) {
	if json {
		on.Event("warning", map[string]any{"archive": archive, "text": text})
		return
	}
	fmt.Fprintf(on.Out, "warning: %s: %s\n", layout.EncodePath(filepath.Base(archive)), text)
}

// archiveMeter's events stand among the others, on standard output.
func archiveMeter(on *screen.Screen, what string, quiet, asJSON bool) *screen.Meter {
	if asJSON {
		return screen.NewMeter(on, what, on.Out, quiet)
	}
	return screen.NewMeter(on, what, nil, quiet)
}

type archiveCheckCmd struct {
	Archive   []string `arg:"" help:"The archives."`
	Quiet     bool     `short:"q" help:"No progress."`
	readFlags `embed:""`
}

func (c *archiveCheckCmd) Run(ctx context.Context, on *screen.Screen) error {
	for _, archive := range c.Archive {
		if err := wantFile(archive); err != nil {
			return err
		}
	}
	var worst error
	for _, archived := range c.Archive {
		p := archiveMeter(on, "check", c.Quiet, c.JSON)
		in, err := archive.Inspect(ctx, archived, archive.InspectOptions{Limits: c.limits(), Names: strings.ToLower(c.Names), Data: true, Progress: p.Report})
		p.Close()
		if err != nil {
			return err
		}
		if err := inspected(on, archived, in, c.JSON); err != nil {
			worst = err
		}
	}
	return worst
}

type archiveExtractCmd struct {
	Archive   string `arg:"" help:"The archive; of one in several parts the first."`
	To        string `arg:"" optional:"" writes:"" help:"The folder to make; default: the archive's name without its ending, in the current folder."`
	Nested    int    `placeholder:"N" help:"Unpack archives within it in place, down to this depth; 0."`
	Sync      bool   `negatable:"" default:"true" help:"Wait until everything is on disk."`
	Quiet     bool   `short:"q" help:"No progress."`
	readFlags `embed:""`
}

// AfterApply is called by kong: where it extracts to is known before it runs.
func (c *archiveExtractCmd) AfterApply() error {
	c.To = cmp.Or(c.To, archive.FolderName(c.Archive))
	return nil
}

func (c *archiveExtractCmd) Run(ctx context.Context, on *screen.Screen) error {
	to := c.To
	if err := cmp.Or(wantFile(c.Archive), wantPlace(to)); err != nil {
		return err
	}
	p := archiveMeter(on, "extract", c.Quiet, c.JSON)
	x, err := archive.ExtractTo(ctx, c.Archive, to, archive.ExtractOptions{Limits: c.limits(), Names: strings.ToLower(c.Names), Nested: c.Nested, NoSync: !c.Sync, Progress: p.Report})
	p.Close()
	if err != nil {
		return archiveFailed(on, c.Archive, err, c.JSON)
	}
	for _, w := range x.Warnings {
		archiveWarning(on, c.Archive, w, c.JSON)
	}
	if c.JSON {
		on.Event("done", map[string]any{"archive": c.Archive, "to": to, "format": x.Format, "files": x.Files, "folders": x.Folders,
			"bytes": x.Bytes, "nested": x.Nested, "warnings": len(x.Warnings)})
		return nil
	}
	fmt.Fprintf(on.Out, "%s: %s: %s, %s, %s\n", to, x.Format, screen.Count(x.Files, "file"), screen.Count(x.Folders, "folder"), screen.Count(x.Bytes, "byte"))
	return nil
}

type archivePackCmd struct {
	From         string    `arg:"" help:"The folder or file."`
	Archive      string    `arg:"" writes:"" help:"The archive to make; its ending says the format: .zip, .tar, .tar.gz, .tar.zst."`
	Format       string    `placeholder:"FORMAT" help:"The format, whatever the ending: zip, tar, tar.gz, tar.zst."`
	Reproducible bool      `help:"The same bytes from the same content: sorted, one time (1980-01-01), no owner, plain permissions."`
	Time         time.Time `placeholder:"TIME" help:"The time of every member, as 2020-01-31T12:00:00Z."`
	Sync         bool      `negatable:"" default:"true" help:"Wait until it is on disk."`
	Quiet        bool      `short:"q" help:"No progress."`
	JSON         bool      `name:"json" help:"Print one JSON object a line."`
}

func (c *archivePackCmd) Run(ctx context.Context, on *screen.Screen) error {
	if err := cmp.Or(wantEither(c.From), wantPlace(c.Archive)); err != nil {
		return err
	}
	p := archiveMeter(on, "pack", c.Quiet, c.JSON)
	packed, err := archive.Pack(ctx, c.From, c.Archive, archive.PackOptions{
		Format: archive.Format(c.Format), Reproducible: c.Reproducible, Time: c.Time, NoSync: !c.Sync, Progress: p.Report,
	})
	p.Close()
	if errors.Is(err, archive.ErrPackFormat) {
		return screen.WrongUse(err.Error())
	}
	if err != nil {
		return archiveFailed(on, c.From, err, c.JSON)
	}
	if c.JSON {
		on.Event("done", map[string]any{"archive": c.Archive, "format": packed.Format, "files": packed.Files, "folders": packed.Folders,
			"bytes": packed.Bytes, "size": packed.Size})
		return nil
	}
	fmt.Fprintf(on.Out, "%s: %s: %s, %s, %s packed into %d\n", c.Archive, packed.Format, screen.Count(packed.Files, "file"),
		screen.Count(packed.Folders, "folder"), screen.Count(packed.Bytes, "byte"), packed.Size)
	return nil
}

// archiveFailed reports what is wrong with an archive as an event, too.
func archiveFailed(on *screen.Screen, given string, err error, asJSON bool) error {
	var broken *files.Error
	if asJSON && errors.As(err, &broken) {
		on.Event("problem", problemOf(given, broken))
	}
	return err
}
