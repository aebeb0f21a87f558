package inbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"bagpipe/engine/inbox/internal/content"
	"bagpipe/layout"
	"bagpipe/layout/disk"
)

const (
	journalFile    = "drop.json"
	copyingDir     = "copying"
	modeRename     = "rename"
	modeCopy       = "copy"
	journalSchema  = 1
	filePerm       = 0o644
	intakeLockFile = layout.StateDir + "/intake.lock"
)

// journal is drop.json.
type journal struct {
	journalDrop
	journalBeside
	Ticket
	Aside   string          `json:"aside,omitempty"`
	Engine  layout.EngineID `json:"engine"`
	Item    layout.ItemID   `json:"item,omitempty"`
	Mode    string          `json:"mode"`
	Schema  int             `json:"schema"`
	Taken   time.Time       `json:"taken"`
	Version int             `json:"version,omitempty"`
}

// journalDrop is what was dropped.
type journalDrop struct {
	Bytes      int64            `json:"bytes"`
	Collection layout.Name      `json:"collection"`
	Files      int              `json:"files"`
	Kind       Kind             `json:"kind"`
	Name       string           `json:"name"`
	Origin     string           `json:"origin"`
	Original   *layout.Original `json:"original,omitempty"`
	Set        []string         `json:"set,omitempty"`
}

// journalBeside is what lay beside it.
type journalBeside struct {
	Marker     string   `json:"marker,omitempty"`
	MarkerSeen string   `json:"markerSeen,omitempty"`
	Shared     string   `json:"shared,omitempty"`
	Sidecars   []string `json:"sidecars,omitempty"`
	CarsSeen   []string `json:"sidecarsSeen,omitempty"`
}

// encode writes the fields in the order of their keys.
func (j journal) encode() ([]byte, error) {
	data, err := encode(j)
	if err != nil {
		return nil, err
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, err
	}
	return encode(fields)
}

// journalOf gives the journal of a drop about to be taken.
func (b *taker) journalOf(d Drop, t Ticket) journal {
	return journal{
		journalDrop: journalDrop{Bytes: d.Bytes, Collection: d.Collection, Files: d.Files, Kind: d.Kind, Name: layout.EncodePath(d.Name),
			Origin: b.shorten(d.Path), Set: setOf(d)},
		journalBeside: journalBeside{Marker: b.shorten(d.Marker), MarkerSeen: d.markerSeen,
			Shared: b.shorten(d.Shared), Sidecars: b.shortenAll(d.Sidecars), CarsSeen: carsSeen(d.Sidecars)},
		Ticket: t, Engine: b.engine, Mode: modeRename, Schema: journalSchema, Taken: b.now().UTC().Truncate(time.Microsecond),
	}
}

func setOf(d Drop) (names []string) {
	for _, m := range d.set {
		names = append(names, layout.EncodePath(m.name))
	}
	return names
}

func fileNames(encoded []string) (names []string, err error) {
	for _, enc := range encoded {
		name, err := layout.DecodePath(enc)
		if err != nil {
			return nil, err
		}
		if !isFileName(name) {
			return nil, fmt.Errorf("%q is not a file's name", enc)
		}
		names = append(names, name)
	}
	return names, nil
}

func isFileName(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/\x00")
}

// taken gives the Taken that a journal describes, still in the intake.
func (b *taker) taken(id layout.ItemID, j journal) (Taken, error) {
	name, err := layout.DecodePath(j.Name)
	if err != nil {
		return Taken{}, err
	}
	if !isFileName(name) {
		return Taken{}, fmt.Errorf("%q is not a file's name", j.Name)
	}
	set, err := fileNames(j.Set)
	if err != nil {
		return Taken{}, err
	}
	origin, err := b.lengthen(j.Origin)
	if err != nil {
		return Taken{}, err
	}
	aside, err := b.lengthen(j.Aside)
	if err != nil {
		return Taken{}, err
	}
	marker, err := b.lengthen(j.Marker)
	if err != nil {
		return Taken{}, err
	}
	shared, err := b.lengthen(j.Shared)
	if err != nil {
		return Taken{}, err
	}
	sidecars, err := b.lengthenAll(j.Sidecars)
	if err != nil {
		return Taken{}, err
	}
	if _, err := layout.ParseItemID(string(j.Item)); j.Item != "" && (err != nil || j.Version < 2) {
		return Taken{}, fmt.Errorf("%s: item %q, version %d: not a version of an item", journalFile, j.Item, j.Version)
	}
	if _, err := layout.ParseItemID(string(j.VersionOf)); j.VersionOf != "" && err != nil {
		return Taken{}, fmt.Errorf("%s: versionOf: %w", journalFile, err)
	}
	ticket := j.Ticket
	ticket.Collection = j.journalDrop.Collection
	return Taken{
		ID: id, Collection: ticket.Collection, Name: name, Kind: j.Kind, Files: j.Files, Bytes: j.Bytes, Ticket: ticket,
		At: j.Taken, Origin: origin, Path: b.sourceOf(id, name), Original: j.Original,
		Successor:  Successor{Item: j.Item, Version: j.Version},
		Companions: Companions{Sidecars: sidecars, Shared: shared},
		leftBehind: leftBehind{aside: aside, marker: marker, markerSeen: j.MarkerSeen, carsSeen: j.CarsSeen, set: set},
	}, nil
}

func encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(v)
	return buf.Bytes(), err
}

func readJournal(dir string) (journal, error) {
	data, err := disk.ReadFile(filepath.Join(dir, journalFile))
	if err != nil {
		return journal{}, err
	}
	var j journal
	if err := json.Unmarshal(data, &j); err != nil {
		return journal{}, fmt.Errorf("read %s: %w", journalFile, err)
	}
	if j.Schema > journalSchema {
		return journal{}, fmt.Errorf("%s has schema %d; this program knows up to %d, use a newer one", journalFile, j.Schema, journalSchema)
	}
	return j, nil
}

// rewriteJournal sets some fields and keeps the others, known or not.
func rewriteJournal(dir string, set map[string]any) error {
	path := filepath.Join(dir, journalFile)
	data, err := disk.ReadFile(path)
	if err != nil {
		return err
	}
	fields := map[string]any{}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := dec.Decode(&fields); err != nil {
		return fmt.Errorf("read %s: %w", journalFile, err)
	}
	for k, v := range set {
		fields[k] = v
	}
	out, err := encode(fields)
	if err != nil {
		return err
	}
	return disk.WriteFile(path, out, filePerm)
}

var errNoEngine = errors.New("no engine is named in the inbox's options")

// open makes intake/ID with its journal and an empty source folder. It appears
// by one rename, complete. A crash before leaves .ENGINE.ID.tmp, after it a
// folder that took nothing; Pending removes both. Without sync the caller syncs
// before anything is moved in.
func (b *taker) open(id layout.ItemID, j journal, sync bool) error {
	if b.engine == "" {
		return errNoEngine
	}
	data, err := j.encode()
	if err != nil {
		return err
	}
	intake := b.path(layout.IntakeDir)
	if err := disk.MkdirAll(intake, content.DirPerm); err != nil {
		return err
	}
	tmp := filepath.Join(intake, "."+string(b.engine)+"."+string(id)+".tmp")
	err = errors.Join(os.Mkdir(tmp, content.DirPerm), os.Mkdir(filepath.Join(tmp, layout.SourceDir), content.DirPerm))
	if err == nil {
		err = writeNew(filepath.Join(tmp, journalFile), data, sync)
	}
	if err == nil && sync {
		err = disk.SyncDir(tmp)
	}
	if err == nil {
		err = content.RenameNew(tmp, b.intakeOf(id))
	}
	if err != nil {
		return errors.Join(err, discardIntake(tmp))
	}
	if sync {
		return disk.SyncDir(intake)
	}
	return nil
}

func writeNew(path string, data []byte, sync bool) (err error) {
	f, err := disk.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, filePerm)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.Write(data); err != nil || !sync {
		return err
	}
	return f.Sync()
}
