package bags

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Entry is one thing found in a folder.
type Entry struct {
	Path string // relative to the folder, forward slashes, raw bytes
	Size int64
	Mode fs.FileMode
	Time time.Time
}

// Tree is a folder's contents. Links are never followed; nothing is opened but
// folders.
type Tree struct {
	Dir     string
	Files   []Entry // regular files, in byte order of their folders' walk
	Folders []Entry // without Dir itself
	Others  []Entry // links, devices, FIFOs, sockets
}

// Bytes is the size of all files together.
func (t *Tree) Bytes() (n int64) {
	for i := range t.Files {
		n += t.Files[i].Size
	}
	return n
}

// EmptyFolders gives the folders that hold nothing at all.
func (t *Tree) EmptyFolders() []string {
	used := map[string]bool{}
	for _, es := range [][]Entry{t.Files, t.Folders, t.Others} {
		for i := range es {
			used[parent(es[i].Path)] = true
		}
	}
	var empty []string
	for i := range t.Folders {
		if !used[t.Folders[i].Path] {
			empty = append(empty, t.Folders[i].Path)
		}
	}
	return empty
}

// CheckRegular gives an *Error for the first link or special file.
func (t *Tree) CheckRegular() error {
	if len(t.Others) == 0 {
		return nil
	}
	first := &t.Others[0]
	if first.Mode&fs.ModeSymlink != 0 {
		return &Error{Archive: baseName(t.Dir), Member: first.Path, Rule: RuleSymlink, Detail: "symbolic links are not taken"}
	}
	return &Error{Archive: baseName(t.Dir), Member: first.Path, Rule: RuleSpecial, Detail: "devices, FIFOs and sockets are not taken"}
}

func parent(p string) string {
	for i := len(p) - 1; i >= 0; i-- {
		if p[i] == '/' {
			return p[:i]
		}
	}
	return ""
}

// Scan lists everything below dir.
func Scan(ctx context.Context, dir string) (*Tree, error) { return scan(ctx, dir, "") }

// scan passes over the folder skip.
func scan(ctx context.Context, dir, skip string) (*Tree, error) {
	t := &Tree{Dir: dir}
	if info, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("list folder: %w", err)
	} else if !info.IsDir() {
		return nil, fmt.Errorf("list %s: not a folder", dir)
	}
	root := filepath.Clean(dir) + string(filepath.Separator)
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if p == root {
			return nil
		}
		if skip != "" && p[len(root):] == skip {
			return fs.SkipDir
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		e := Entry{Path: filepath.ToSlash(p[len(root):]), Size: info.Size(), Mode: info.Mode(), Time: info.ModTime()}
		switch {
		case info.IsDir():
			e.Size = 0
			t.Folders = append(t.Folders, e)
		case info.Mode().IsRegular():
			t.Files = append(t.Files, e)
		default:
			t.Others = append(t.Others, e)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list folder %s: %w", dir, err)
	}
	return t, nil
}
