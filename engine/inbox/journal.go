package inbox

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"bagpipe/layout"
	"bagpipe/layout/disk"
)

// Ticket is what its giver wants of a drop.
type Ticket struct {
	Collection layout.Name // of Accept; Take goes by the drop's folder
	Chosen     bool        // the collection was asked for by name: no rule gives another
	Workflow   layout.Name
	Lane       layout.Name
	Label      string
	Batch      string
	By         string
	Move       bool // Accept: move instead of copying
}

// Taken is a drop in the intake, or promoted to its item's folder.
type Taken struct {
	ID         layout.ItemID
	Collection layout.Name
	Name       string // as dropped, any bytes
	Kind       Kind
	Files      int
	Bytes      int64
	Ticket     Ticket
	At         time.Time
	Origin     string // where it was dropped
	Path       string // where it is now
	Promoted   bool

	Sidecars []string // files where it was dropped that are about it alone; with the item from Done on
	Shared   string   // a table there that is about several drops

	Original *layout.Original // stays where it was dropped: it may not be removed

	Item    layout.ItemID // that it is, or was, to be a version of; "": an item of its own
	Version int

	aside      string // its original, kept until Done; empty: none
	marker     string // of the drop, kept as long
	markerSeen string
	carsSeen   []string // which files the side-cars were, in which state
	set        []string // the files, if it was a set; Origin is the first
}

const (
	journalFile    = "drop.json"
	copyingDir     = "copying"
	modeRename     = "rename"
	modeCopy       = "copy"
	journalSchema  = 1
	filePerm       = 0o644
	dirPerm        = 0o755
	intakeLockFile = layout.StateDir + "/intake.lock"
)

// journal is drop.json; its fields stand in the order of their keys.
type journal struct {
	Aside      string           `json:"aside,omitempty"`
	Batch      string           `json:"batch,omitempty"`
	By         string           `json:"by,omitempty"`
	Bytes      int64            `json:"bytes"`
	Chosen     bool             `json:"chosen,omitempty"`
	Collection layout.Name      `json:"collection"`
	Engine     layout.EngineID  `json:"engine"`
	Files      int              `json:"files"`
	Item       layout.ItemID    `json:"item,omitempty"`
	Kind       Kind             `json:"kind"`
	Label      string           `json:"label,omitempty"`
	Lane       layout.Name      `json:"lane,omitempty"`
	Marker     string           `json:"marker,omitempty"`
	MarkerSeen string           `json:"markerSeen,omitempty"`
	Mode       string           `json:"mode"`
	Name       string           `json:"name"`
	Origin     string           `json:"origin"`
	Original   *layout.Original `json:"original,omitempty"`
	Schema     int              `json:"schema"`
	Set        []string         `json:"set,omitempty"`
	Shared     string           `json:"shared,omitempty"`
	Sidecars   []string         `json:"sidecars,omitempty"`
	CarsSeen   []string         `json:"sidecarsSeen,omitempty"`
	Taken      time.Time        `json:"taken"`
	Version    int              `json:"version,omitempty"`
	Workflow   layout.Name      `json:"workflow,omitempty"`
}

// shorten writes a path for the journal: relative where it lies in the
// workspace, so that the workspace may be moved.
func (b *Box) shorten(path string) string {
	if rest, ok := strings.CutPrefix(path, b.opt.Root+"/"); ok {
		path = rest
	}
	return layout.EncodePath(path)
}

func (b *Box) lengthen(s string) (string, error) {
	path, err := layout.DecodePath(s)
	if err != nil || path == "" || filepath.IsAbs(path) {
		return path, err
	}
	return b.path(path), nil
}

// journalOf gives the journal of a drop about to be taken.
func (b *Box) journalOf(d Drop, t Ticket) journal {
	return journal{
		Batch: t.Batch, Chosen: t.Chosen, By: t.By, Bytes: d.Bytes, Collection: d.Collection, Engine: b.opt.Engine, Files: d.Files,
		Kind: d.Kind, Label: t.Label, Lane: t.Lane, Mode: modeRename, Name: layout.EncodePath(d.Name),
		Origin: b.shorten(d.Path), Schema: journalSchema, Taken: b.opt.Now().UTC().Truncate(time.Microsecond),
		Workflow: t.Workflow, Marker: b.shorten(d.Marker), MarkerSeen: d.markerSeen,
		Set: setOf(d), Shared: b.shorten(d.Shared), Sidecars: b.shortenAll(d.Sidecars), CarsSeen: carsSeen(d.Sidecars),
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

func (b *Box) shortenAll(paths []string) []string {
	var short []string
	for _, p := range paths {
		short = append(short, b.shorten(p))
	}
	return short
}

func (b *Box) lengthenAll(short []string) ([]string, error) {
	var paths []string
	for _, s := range short {
		p, err := b.lengthen(s)
		if err != nil {
			return nil, err
		}
		paths = append(paths, p)
	}
	return paths, nil
}

// taken gives the Taken that a journal describes, still in the intake.
func (b *Box) taken(id layout.ItemID, j journal) (Taken, error) {
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
	return Taken{
		Item: j.Item, Version: j.Version, Original: j.Original,
		Shared: shared, Sidecars: sidecars, set: set,
		marker: marker, markerSeen: j.MarkerSeen, carsSeen: j.CarsSeen,
		ID: id, Collection: j.Collection, Name: name, Kind: j.Kind, Files: j.Files, Bytes: j.Bytes,
		At: j.Taken, Origin: origin, Path: b.sourceOf(id, name), aside: aside,
		Ticket: Ticket{Collection: j.Collection, Chosen: j.Chosen, Workflow: j.Workflow, Lane: j.Lane, Label: j.Label, Batch: j.Batch, By: j.By},
	}, nil
}

func (b *Box) intakeOf(id layout.ItemID) string { return b.path(layout.IntakeDir, string(id)) }

func (b *Box) sourceOf(id layout.ItemID, name string) string {
	return filepath.Join(b.intakeOf(id), layout.SourceDir, name)
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
	data, err := os.ReadFile(filepath.Join(dir, journalFile))
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
	data, err := os.ReadFile(path)
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
