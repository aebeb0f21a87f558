package steps

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"bagpipe/bags/archive"
	"bagpipe/bags/files"
	"bagpipe/layout"
)

const contentOut = "content" // in scratch

// unpack makes the object that the later steps work on: what is in the archive,
// or the drop itself, as hard links, so that it costs no space. Either way
// source/ stays as dropped.
func unpack(ctx context.Context, c *Call) (Result, error) {
	if c.Place != "" {
		return Result{Status: Skipped, Message: "not applicable: the object stays in its catalog, and is opened for each step"}, nil
	}
	drop, err := theDrop(c)
	if err != nil {
		return Result{}, err
	}
	o, err := unpackOptions(c)
	if err != nil {
		return Result{}, err
	}
	to := filepath.Join(c.Scratch, contentOut)
	if err := os.Mkdir(to, 0o755); err != nil {
		return Result{}, failure(err)
	}
	if drop, err = inParts(drop); err != nil {
		return Result{}, failure(err)
	}
	format, err := archive.Sniff(drop)
	if err != nil {
		return Result{}, failure(err)
	}
	published := []Output{{From: contentOut, To: layout.ContentDir}}
	var x archive.Extracted
	if format != archive.None {
		x, err = archive.Extract(ctx, drop, to, o)
	} else {
		var message string
		message, x, err = takeAsIs(ctx, drop, to, o)
		if err != nil || x.Nested == 0 {
			left, leftErr := leaveOut(c, to)
			return Result{Status: Skipped, Message: message + left, Outputs: published}, failure(cmp.Or(err, leftErr))
		}
	}
	if err != nil {
		return Result{}, failure(err)
	}
	left, err := leaveOut(c, to)
	if err != nil {
		return Result{}, failure(err)
	}
	for _, w := range x.Warnings {
		c.logf("warning: %s", w)
	}
	message := fmt.Sprintf("%s: %s, %s", cmp.Or(string(x.Format), "folder"), layout.Count(x.Files, "file"), layout.Count(x.Bytes, "byte"))
	if x.Nested > 0 {
		message += fmt.Sprintf(", %s within unpacked", layout.Count(x.Nested, "archive"))
	}
	if n := len(x.Warnings); n > 0 {
		message += fmt.Sprintf("; %s, first: %s", layout.Count(n, "warning"), x.Warnings[0])
	}
	return Result{Message: message + left, Outputs: published}, nil
}

// leaveOut removes from the content what the black list names, and says what; source/ keeps
// it. A bag is left as it is: it says itself what belongs to it.
func leaveOut(c *Call, content string) (left string, err error) {
	if c.LeaveOut == nil || c.SourceKind == "bag" || c.SourceKind == "file" {
		return "", nil
	}
	top := content
	for {
		entries, err := os.ReadDir(top)
		if err != nil {
			return "", err
		}
		if len(entries) != 1 || !entries[0].IsDir() {
			break
		}
		top = filepath.Join(top, entries[0].Name())
	}
	var names []string
	err = filepath.WalkDir(top, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == top && !isBag(p) {
			return err
		}
		if d.IsDir() && isBag(p) {
			return fs.SkipDir
		}
		rel := strings.TrimPrefix(p, top+"/")
		if !c.LeaveOut(rel) {
			return nil
		}
		names = append(names, layout.EncodePath(rel))
		if err := os.RemoveAll(p); err != nil || !d.IsDir() {
			return err
		}
		return fs.SkipDir
	})
	if err != nil || len(names) == 0 {
		return "", err
	}
	for _, name := range names {
		c.logf("left out of content, and kept in source: %s", name)
	}
	const shown = 5
	more := ""
	if len(names) > shown {
		more = ", …"
	}
	return fmt.Sprintf("; left out by the rules' black list, and kept in source: %d (%s%s)", len(names), strings.Join(names[:min(shown, len(names))], ", "), more), nil
}

func isBag(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, "bagit.txt"))
	return err == nil
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

// inParts gives the file that opens an archive in several, where the drop is a folder of these
// files alone; the drop otherwise.
func inParts(drop string) (string, error) {
	info, err := os.Lstat(drop)
	if err != nil || !info.IsDir() {
		return drop, err
	}
	entries, err := os.ReadDir(drop)
	if err != nil {
		return drop, err
	}
	var names []string
	for _, e := range entries {
		if !e.Type().IsRegular() {
			return drop, nil
		}
		names = append(names, e.Name())
	}
	if sets := archive.Parts(names); len(sets) == 1 && sets[0].Lacks == "" && len(sets[0].Files) == len(names) {
		return filepath.Join(drop, sets[0].Files[0]), nil
	}
	return drop, nil
}

func unpackOptions(c *Call) (o archive.ExtractOptions, err error) {
	o, err = unpackParams(c.With)
	o.Limits, o.Progress = c.Limits, c.progress()
	return o, err
}

func unpackParams(with map[string]any) (o archive.ExtractOptions, err error) {
	if o.Nested, err = countParam(with, "nested"); err != nil {
		return o, err
	}
	if o.Names, err = stringParam(with, "names"); err != nil {
		return o, err
	}
	o.Names = strings.ToLower(o.Names)
	if o.Names != "" && !slices.Contains(archive.CodePages(), o.Names) {
		return o, wrongParam("names", "no code page %q; there are %s", o.Names, strings.Join(archive.CodePages(), ", "))
	}
	return o, nil
}

// takeAsIs publishes what is no archive. What is packed within a folder is
// unpacked there, if the step says so.
func takeAsIs(ctx context.Context, drop, to string, o archive.ExtractOptions) (message string, x archive.Extracted, err error) {
	info, err := os.Lstat(drop)
	if err != nil {
		return "", x, err
	}
	if !info.IsDir() {
		message = fmt.Sprintf("not applicable: %s is no archive", layout.EncodePath(filepath.Base(drop)))
		return message, x, files.Place(ctx, fileTree(drop, info), to, true)
	}
	t, err := files.Scan(ctx, drop)
	if err != nil {
		return "", x, err
	}
	if err := files.Place(ctx, t, to, true); err != nil {
		return "", x, err
	}
	if o.Nested == 0 {
		return "not applicable: a folder is no archive", x, nil
	}
	x, err = archive.ExtractNested(ctx, to, o)
	return "not applicable: a folder that holds no archives", x, err
}
