package sidecar

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"bagpipe/bags/archive"
	"bagpipe/engine/inbox"
	"bagpipe/engine/ledger"
	"bagpipe/engine/settings"
	"bagpipe/layout"

	"golang.org/x/sys/unix"
)

// The rules are: side-cars are read where an inbox's settings have metadata:. What is
// read later wins: the line for the drop in metadata.csv beside it; in a folder
// bag-info.txt, metadata.csv, metadata.json, in an archive the same; and NAME.metadata.csv and
// NAME.metadata.json beside it. A table has a head line. One whose first column is
// file tells of the files in the drop, and stands in metadata.files by their paths;
// one whose first column is drop tells of drops by their names; any other has one
// line, which is about the drop. Everything is bounded, and no more is read than that.

// Bounds of side-cars.
const (
	maxSidecar       = 8 << 20 // of a file
	maxMetadata      = 1 << 20 // of all that comes of them, as JSON
	maxMetadataKeys  = 1000
	maxMetadataKey   = 200
	maxMetadataValue = 64 << 10
	maxIdentifier    = 500
)

// RuleMetadata is broken by a side-car that cannot be read.
const RuleMetadata = "metadata"

// FlaggedMetadata is where an item says what was wrong with its side-cars.
const FlaggedMetadata = "sidecarError"

// SidecarError is about what a producer wrote.
type SidecarError struct{ file, why string }

func (s *SidecarError) Error() string { return layout.EncodePath(s.file) + ": " + s.why }

// ReadMetadata reads the side-cars of a drop, as set maps them; without set none are read.
func ReadMetadata(ctx context.Context, set *settings.MetadataSettings, with CarReader, t inbox.Taken) (fields map[string]any, identifiers map[string]string, err error) {
	if set == nil {
		return nil, nil, nil
	}
	raw := map[string]any{}
	cars := sidecarsOf(t)
	format, err := with.archive(t)
	if err != nil || len(cars) == 0 && format == archive.None {
		return raw, nil, err
	}
	leave, err := with.enter(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer leave()
	inside, err := with.packed(ctx, t, format)
	if err != nil {
		return nil, nil, err
	}
	at := 0
	if len(cars) > 0 && cars[0].drops {
		at = 1
	}
	for _, car := range slices.Insert(cars, at, inside...) {
		if err := with.read(car, raw, t); err != nil {
			return nil, nil, err
		}
	}
	fields = mapped(set, raw)
	if data, err := json.Marshal(fields); err != nil || len(data) > maxMetadata {
		return nil, nil, &SidecarError{"metadata", fmt.Sprintf("takes more than %d bytes in all", maxMetadata)}
	}
	identifiers = map[string]string{}
	for kind, key := range set.Identifiers {
		if raw[key] == nil || raw[key] == "" {
			continue
		}
		value, ok := oneValue(raw[key])
		if !ok {
			return nil, nil, &SidecarError{key, "an identifier is one text or number"}
		}
		if value != ledger.OneLine(value, maxIdentifier) {
			return nil, nil, &SidecarError{key, fmt.Sprintf("an identifier is one line of at most %d bytes", maxIdentifier)}
		}
		identifiers[kind] = value
	}
	return fields, identifiers, nil
}

// oneValue is the text of a value that is a text or a number.
func oneValue(v any) (string, bool) {
	if n, ok := v.(json.Number); ok {
		return n.String(), true
	}
	s, ok := v.(string)
	return s, ok
}

// mapped names the fields as the settings want them, those of each file too; only: is about
// the fields of the drop.
func mapped(s *settings.MetadataSettings, raw map[string]any) map[string]any {
	out := renamed(s, raw, s.Only)
	perFile, is := out[filesKey].(map[string]any)
	if !is {
		return out
	}
	each := make(map[string]any, len(perFile))
	for path, about := range perFile {
		if fields, is := about.(map[string]any); is {
			about = renamed(s, fields, false)
		}
		each[path] = about
	}
	out[filesKey] = each
	return out
}

func renamed(s *settings.MetadataSettings, raw map[string]any, only bool) map[string]any {
	out := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(raw)) {
		to, named := s.Map[key]
		switch {
		case !named && only && key != filesKey:
		case !named:
			out[key] = raw[key]
		case to != "":
			out[to] = raw[key]
		}
	}
	return out
}

// sidecar is one file, and how it is read.
type file struct {
	path  string
	name  string
	drops bool // it is about several drops

	within *packed // it stands in the archive that was dropped
	data   []byte  // its bytes there
}

// sidecarsOf lists the side-cars of a drop that are there.
func sidecarsOf(t inbox.Taken) (found []file) {
	add := func(path string, drops bool) {
		if _, err := os.Lstat(path); path != "" && err == nil {
			found = append(found, file{path: path, name: filepath.Base(path), drops: drops})
		}
	}
	add(t.Shared, true)
	if t.Kind == inbox.Folder {
		for _, name := range []string{"bag-info.txt", "metadata.csv", "metadata.json"} {
			add(filepath.Join(t.Path, name), false)
		}
	}
	for _, path := range t.Sidecars {
		add(path, false)
	}
	return found
}

// CarReader reads side-cars.
type CarReader struct {
	Limits archive.Limits // of archives with side-cars
	Shared *SharedTable
	Turn   chan struct{} // bounds how many drops' are read at once; nil: nothing does
}

// CarsAtOnce drops have their side-cars read at once, while many more are taken in: an
// archive of a million names takes hundreds of megabytes to look through.
const CarsAtOnce = 2

// enter waits for its turn; leave ends that.
func (r CarReader) enter(ctx context.Context) (leave func(), err error) {
	if r.Turn == nil {
		return func() {}, nil
	}
	select {
	case r.Turn <- struct{}{}:
		return func() { <-r.Turn }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (r CarReader) read(c file, into map[string]any, t inbox.Taken) error {
	var err error
	if c.drops {
		err = r.Shared.readShared(c, into, t)
	} else {
		err = c.read(into, t)
	}
	if err != nil {
		return err
	}
	return c.check(into)
}

func (c file) read(into map[string]any, t inbox.Taken) error {
	data, err := c.bytes()
	if err != nil {
		return err
	}
	switch {
	case strings.HasSuffix(c.name, ".json"):
		err = c.readJSON(data, into)
	case strings.HasSuffix(c.name, ".csv"):
		err = c.readTable(data, into, t)
	default:
		err = c.readTags(data, into)
	}
	return err
}

// bytes reads a regular file of bounded size, and opens nothing else.
func (c file) bytes() ([]byte, error) {
	if c.within != nil {
		return c.packedBytes()
	}
	f, err := os.OpenFile(c.path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENXIO) {
			return nil, &SidecarError{c.name, "cannot be read"}
		}
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, &SidecarError{c.name, "is no file"})
	}
	data, err := io.ReadAll(io.LimitReader(f, maxSidecar+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > maxSidecar:
		return nil, &SidecarError{c.name, fmt.Sprintf("is larger than %d bytes", maxSidecar)}
	case !utf8.Valid(data) && !strings.HasSuffix(c.name, ".txt"):
		return nil, &SidecarError{c.name, notUTF8(data)}
	}
	return bytes.TrimPrefix(data, []byte("\ufeff")), nil
}

// check bounds what was read.
func (c file) check(fields map[string]any) error {
	if len(fields) > maxMetadataKeys {
		return &SidecarError{c.name, fmt.Sprintf("has %d fields; the limit is %d", len(fields), maxMetadataKeys)}
	}
	for key, value := range fields {
		if key != ledger.OneLine(key, maxMetadataKey) || key == "" {
			return &SidecarError{c.name, fmt.Sprintf("the name of a field is one line of 1 to %d bytes, not %.100q", maxMetadataKey, key)}
		}
		if s, ok := value.(string); ok && len(s) > maxMetadataValue {
			return &SidecarError{c.name, fmt.Sprintf("%s has %d bytes; the limit is %d", key, len(s), maxMetadataValue)}
		}
	}
	return nil
}
