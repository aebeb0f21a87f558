package sidecar

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"bagpipe/engine/inbox"
	"bagpipe/layout"
)

// Heads of a table's first column, and where the lines about files go.
const (
	fileColumn = "file"
	dropColumn = "drop"
	filesKey   = "files"
)

// table is read line by line: one of the largest size has millions of them.
type table struct {
	c    file
	r    *csv.Reader
	head []string
	row  []string // valid until the next
	n    int      // rows read
}

func (c file) openTable(data []byte) (*table, error) {
	r := csv.NewReader(bytes.NewReader(data))
	if head, _, _ := bytes.Cut(data, []byte("\n")); bytes.Contains(head, []byte(";")) && !bytes.Contains(head, []byte(",")) {
		r.Comma = ';'
	}
	head, err := r.Read()
	if errors.Is(err, io.EOF) {
		return nil, &SidecarError{c.name, "has no head line"}
	}
	if err != nil {
		return nil, &SidecarError{c.name, notTable(err, nil)}
	}
	r.ReuseRecord = true
	if c.drops && head[0] != dropColumn {
		return nil, &SidecarError{c.name, fmt.Sprintf("line 1: the first column of a table beside the drops is to be %q, their names; here it is %.100q", dropColumn, head[0])}
	}
	if len(head) > maxMetadataKeys+1 {
		return nil, &SidecarError{c.name, fmt.Sprintf("line 1: has %d columns; the limit is %d", len(head), maxMetadataKeys+1)}
	}
	for i, column := range head {
		if column == "" || slices.Contains(head[:i], column) {
			return nil, &SidecarError{c.name, fmt.Sprintf("line 1: column %d has no name of its own", i+1)}
		}
	}
	return &table{c: c, r: r, head: head}, nil
}

// notTable words what is wrong with a table.
func notTable(err error, head []string) string {
	var parse *csv.ParseError
	switch {
	case errors.As(err, &parse) && errors.Is(err, csv.ErrFieldCount):
		return fmt.Sprintf("line %d has not the %d columns that its head line has", parse.Line, len(head))
	case errors.As(err, &parse):
		return fmt.Sprintf("line %d, column %d: %v", parse.Line, parse.Column, parse.Err)
	}
	return err.Error()
}

func (c file) readTable(data []byte, into map[string]any, t inbox.Taken) error {
	tab, err := c.openTable(data)
	if err != nil {
		return err
	}
	switch tab.head[0] {
	case dropColumn:
		return tab.readDrop(into, t)
	case fileColumn:
		return tab.readFiles(into, t)
	}
	return tab.readOne(into)
}

// each calls read for every line that is left, as t.row.
func (t *table) each(read func() error) error {
	for {
		var err error
		if t.row, err = t.r.Read(); errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return &SidecarError{t.c.name, notTable(err, t.head)}
		}
		t.n++
		if err := read(); err != nil {
			return err
		}
	}
}

// readDrop takes the lines about the drop.
func (t *table) readDrop(into map[string]any, drop inbox.Taken) error {
	mine := false
	err := t.each(func() error {
		if t.row[0] == drop.Name {
			mine = true
			fill(into, t.head[1:], t.row[1:])
		}
		return nil
	})
	if err != nil {
		return err
	}
	if !mine {
		return &SidecarError{t.c.name, "has no line for the drop " + layout.EncodePath(drop.Name)}
	}
	return nil
}

// readOne takes the one line that there is to be.
func (t *table) readOne(into map[string]any) error {
	err := t.each(func() error {
		if t.n == 1 {
			fill(into, t.head, t.row)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if t.n != 1 {
		return &SidecarError{t.c.name, fmt.Sprintf("has %d lines; its first column is to be %q or %q, or there is to be one line", t.n, fileColumn, dropColumn)}
	}
	return nil
}

// readFiles takes the lines about the files of a drop.
func (t *table) readFiles(into map[string]any, drop inbox.Taken) error {
	files := map[string]any{}
	err := t.each(func() error {
		path := t.row[0]
		if !filepath.IsLocal(path) {
			return &SidecarError{t.c.name, fmt.Sprintf("line %d: names no file of the drop: %.200q", t.n+1, path)}
		}
		if !t.c.isThere(path, drop) {
			return &SidecarError{t.c.name, fmt.Sprintf("line %d: %.200q is not in the drop", t.n+1, path)}
		}
		about := map[string]any{}
		fill(about, t.head[1:], t.row[1:])
		files[layout.EncodePath(path)] = about
		return nil
	})
	if err != nil {
		return err
	}
	into[filesKey] = files
	return nil
}

// isThere tells whether a file is in the drop.
func (c file) isThere(path string, drop inbox.Taken) bool {
	if c.within != nil {
		return c.within.holds(path)
	}
	dir := drop.Path
	if drop.Kind == inbox.File {
		dir = filepath.Dir(drop.Path)
	}
	info, err := os.Lstat(filepath.Join(dir, path))
	return err == nil && info.Mode().IsRegular()
}

// fill sets the fields that a line has a value for.
func fill(into map[string]any, head, row []string) {
	for i, key := range head {
		if row[i] != "" {
			into[key] = row[i]
		}
	}
}
