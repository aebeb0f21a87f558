package steps

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"bagpipe/bags"
	"bagpipe/layout"
)

const contentOut = "content" // in scratch

// unpack makes the object that the later steps work on: what is in the archive,
// or the drop itself, as hard links, so that it costs no space. Either way
// source/ stays as dropped.
func unpack(ctx context.Context, c *Call) (Result, error) {
	drop, err := theDrop(c)
	if err != nil {
		return Result{}, err
	}
	to := filepath.Join(c.Scratch, contentOut)
	if err := os.Mkdir(to, 0o755); err != nil {
		return Result{}, failure(err)
	}
	format, err := bags.Sniff(drop)
	if err != nil {
		return Result{}, failure(err)
	}
	published := []Output{{From: contentOut, To: layout.ContentDir}}
	if format == bags.None {
		message, err := takeAsIs(ctx, drop, to)
		return Result{Status: Skipped, Message: message, Outputs: published}, failure(err)
	}
	x, err := bags.Extract(ctx, drop, to, bags.ExtractOptions{Limits: c.Limits, Progress: c.progress()})
	if err != nil {
		return Result{}, failure(err)
	}
	for _, w := range x.Warnings {
		c.logf("warning: %s", w)
	}
	message := fmt.Sprintf("%s: %s, %s", x.Format, plural(x.Files, "file"), plural(x.Bytes, "byte"))
	if n := len(x.Warnings); n > 0 {
		message += fmt.Sprintf("; %s, first: %s", plural(int64(n), "warning"), x.Warnings[0])
	}
	return Result{Message: message, Outputs: published}, nil
}

// theDrop is the one thing in source/.
func theDrop(c *Call) (string, error) {
	names, err := os.ReadDir(c.Source)
	if err != nil {
		return "", fmt.Errorf("read source: %w", err)
	}
	if len(names) != 1 {
		return "", SystemFailure("source holds %d things where the drop alone should be", len(names))
	}
	return filepath.Join(c.Source, names[0].Name()), nil
}

// takeAsIs publishes what is no archive.
func takeAsIs(ctx context.Context, drop, to string) (string, error) {
	info, err := os.Lstat(drop)
	if err != nil {
		return "", err
	}
	if info.IsDir() {
		t, err := bags.Scan(ctx, drop)
		if err != nil {
			return "", err
		}
		return "not applicable: a folder is no archive", bags.Place(ctx, t, to, true)
	}
	message := fmt.Sprintf("not applicable: %s is no archive", layout.EncodePath(filepath.Base(drop)))
	return message, bags.Place(ctx, fileTree(drop, info), to, true)
}
