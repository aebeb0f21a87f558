package target

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/srerickson/ocfl-go"
	"github.com/srerickson/ocfl-go/extension"
	"github.com/srerickson/ocfl-go/fs/local"

	"bagpipe/layout"
	"bagpipe/steps/target/internal/ocflcodes"
)

// OCFLFinding is one thing wrong with an OCFL object or storage root.
type OCFLFinding struct {
	Object   string `json:"object"`         // its path below what is validated, percent-encoded; "." is that
	Code     string `json:"code,omitempty"` // of OCFL's validation codes: E023, W004
	Severity string `json:"severity"`       // error or warning
	Text     string `json:"text"`
}

// OCFLReport is what a validation saw.
type OCFLReport struct {
	Valid    bool          `json:"valid"`
	Objects  int           `json:"objects"`
	Findings []OCFLFinding `json:"findings"`
}

// ValidateOCFL validates an OCFL object, or a storage root with all its objects, of 1.0 or
// 1.1, in a folder of this machine; quick leaves the digests of contents out. Its error is
// about the machine alone.
func ValidateOCFL(ctx context.Context, dir string, quick bool) (OCFLReport, error) {
	r := OCFLReport{Findings: []OCFLFinding{}}
	if info, err := os.Stat(dir); err != nil {
		return r, err
	} else if !info.IsDir() {
		return r, &fs.PathError{Op: "validate", Path: dir, Err: errors.New("no folder")}
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return r, err
	}
	fsys, err := local.NewFS(dir)
	if err != nil {
		return r, err
	}
	v := &ocflValidation{OCFLReport: &r, fsys: fsys, dir: dir, seen: map[[2]uint64]bool{}, ids: map[string]string{}, had: map[[2]string]bool{}}
	if quick {
		v.options = append(v.options, ocfl.ValidationSkipDigest())
	}
	isRoot, err := v.isRoot()
	switch {
	case err != nil:
	case isRoot:
		err = v.storage(ctx)
	default:
		err = v.object(ctx, ".")
	}
	r.Valid = !slices.ContainsFunc(r.Findings, func(f OCFLFinding) bool { return f.Severity == "error" })
	return r, errors.Join(err, ctx.Err())
}

// ocflValidation is one validation of a folder.
type ocflValidation struct {
	*OCFLReport
	fsys    *local.FS
	dir     string
	options []ocfl.ObjectValidationOption
	seen    map[[2]uint64]bool // inodes of files with several names
	ids     map[string]string  // where the object of an identifier stands
	layout  extension.Layout   // of the storage root; nil: not known
	spec    string             // that the storage root declares
	depths  map[bool]bool      // objects directly in the root, and below
	had     map[[2]string]bool // places and their codes so far
}

// isRoot tells a storage root from an object: by its declaration or layout, or as an object is
// below and none is here.
func (v *ocflValidation) isRoot() (bool, error) {
	entries, err := os.ReadDir(v.dir)
	if err != nil {
		return false, err
	}
	folders := false
	for _, e := range entries {
		switch name := e.Name(); {
		case strings.HasPrefix(name, "0="+objectValue), name == inventoryName:
			return false, nil
		case strings.HasPrefix(name, "0=ocfl_"), name == layoutFile:
			return true, nil
		case e.IsDir() && !strings.HasPrefix(name, "v"):
			folders = true
		}
	}
	return folders && v.objectBelow("."), nil
}

const objectValue = "ocfl_object_"

// objectBelow looks for an object's declaration.
func (v *ocflValidation) objectBelow(at string) (found bool) {
	_ = filepath.WalkDir(filepath.Join(v.dir, filepath.FromSlash(at)), func(_ string, e fs.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(e.Name(), "0="+objectValue) {
			found = true
			return fs.SkipAll
		}
		return nil
	})
	return found
}

// pipe gives the first name in a folder, or below it, that is a pipe, a device or a socket, or leads
// to one: whoever reads it may wait for ever.
func (v *ocflValidation) pipe(at string, below bool) (found string) {
	root := filepath.Join(v.dir, filepath.FromSlash(at))
	_ = filepath.WalkDir(root, func(p string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() && p != root && !below {
			return fs.SkipDir
		}
		if info, serr := os.Stat(p); err == nil && serr == nil && !info.IsDir() && !info.Mode().IsRegular() {
			rel, _ := filepath.Rel(v.dir, p) // both are below it
			found = filepath.ToSlash(rel)
			return fs.SkipAll
		}
		return nil
	})
	return found
}

func (v *ocflValidation) object(ctx context.Context, at string) error {
	v.Objects++
	if name := v.pipe(at, true); name != "" {
		v.more(name, []ocflcodes.Fault{{Code: "E090", Text: "neither a file nor a folder; its object is not read"}})
		return nil
	}
	v.judge(ctx, at)
	more, err := ocflcodes.Object(ctx, filepath.Join(v.dir, filepath.FromSlash(at)), v.seen)
	v.more(at, more)
	return err
}

// judge adds what the library finds in an object. It panics over some broken inventories
// (v0.11.0: a version that names a file that the manifest has below another folder).
func (v *ocflValidation) judge(ctx context.Context, at string) {
	defer func() {
		if p := recover(); p != nil {
			v.add(at, "error", fmt.Errorf("the inventory cannot be followed: %v", p))
		}
	}()
	found := ocfl.ValidateObject(ctx, v.fsys, at, v.options...)
	for _, err := range found.Errors() {
		v.add(at, "error", err)
	}
	for _, err := range found.WarnErrors() {
		v.add(at, "warning", err)
	}
}

// more adds what has a code that was not found yet at a place.
func (v *ocflValidation) more(at string, faults []ocflcodes.Fault) {
	at = layout.EncodePath(at)
	for _, f := range faults {
		if v.had[[2]string{at, f.Code}] {
			continue
		}
		v.had[[2]string{at, f.Code}] = true
		severity := "error"
		if f.Code[0] == 'W' {
			severity = "warning"
		}
		v.Findings = append(v.Findings, OCFLFinding{at, f.Code, severity, strings.Map(printable, f.Text)})
	}
}

// printable keeps what an inventory says from steering a terminal.
func printable(r rune) rune {
	if unicode.IsPrint(r) {
		return r
	}
	return unicode.ReplacementChar
}

func (v *ocflValidation) add(at, severity string, err error) {
	f := OCFLFinding{Object: layout.EncodePath(at), Severity: severity, Text: strings.Map(printable, err.Error())}
	var coded *ocfl.ValidationError
	if errors.As(err, &coded) {
		f.Code = coded.Code
	}
	v.had[[2]string{f.Object, f.Code}] = true
	v.Findings = append(v.Findings, f)
}

// storage walks a storage root: below it are folders, objects, and nothing between.
func (v *ocflValidation) storage(ctx context.Context) error {
	if name := v.pipe(".", false); name != "" {
		v.more(name, []ocflcodes.Fault{{Code: "E090", Text: "neither a file nor a folder; the storage root is not read"}})
		return nil
	}
	spec, faults, err := ocflcodes.Root(v.dir)
	if err != nil {
		return err
	}
	v.spec, v.depths = spec, map[bool]bool{}
	v.more(".", faults)
	if root, err := ocfl.NewRoot(ctx, v.fsys, "."); err == nil {
		v.layout = root.Layout()
	}
	if err := v.walk(ctx, "."); err != nil {
		return err
	}
	if len(v.depths) > 1 {
		v.more(".", []ocflcodes.Fault{{Code: "W015", Text: "objects stand in the root and below folders"}})
	}
	return nil
}

func (v *ocflValidation) walk(ctx context.Context, at string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	entries, err := os.ReadDir(filepath.Join(v.dir, filepath.FromSlash(at)))
	if err != nil {
		return err
	}
	if at != "." && slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		return strings.HasPrefix(e.Name(), "0="+objectValue) || e.Name() == inventoryName
	}) {
		v.depths[strings.Contains(at, "/")] = true
		if err := v.object(ctx, at); err != nil || v.pipe(at, false) != "" {
			return err
		}
		return v.inRoot(at)
	}
	var faults []ocflcodes.Fault
	add := func(code, text string) { faults = append(faults, ocflcodes.Fault{Code: code, Text: text}) }
	if len(entries) == 0 && at != "." {
		add("E073", "an empty folder in the storage root")
	}
	folders := 0
	for _, e := range entries {
		name := path.Join(at, e.Name())
		switch {
		case at == "." && e.Name() == "extensions" && e.IsDir():
		case e.IsDir():
			folders++
			if err := v.walk(ctx, name); err != nil {
				return err
			}
		case !e.Type().IsRegular():
			v.more(name, []ocflcodes.Fault{{Code: "E090", Text: "a link, or no file"}})
		case at != ".": // in the root itself files that are not understood are ignored (E087)
			text := "a file between the storage root and its objects"
			v.more(name, []ocflcodes.Fault{{Code: "E072", Text: text}, {Code: "E084", Text: text}})
		}
	}
	if folders == 0 && len(entries) > 0 && at != "." {
		text := "no object is here, nor below"
		add("E082", text)
		add("E085", text)
		add("E088", text)
	}
	v.more(at, faults)
	return nil
}

// inRoot judges an object by the root it stands in.
func (v *ocflValidation) inRoot(at string) error {
	data, err := os.ReadFile(filepath.Join(v.dir, filepath.FromSlash(at), inventoryName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var said struct{ ID, Type string }
	if err != nil || json.Unmarshal(data, &said) != nil {
		return err
	}
	var faults []ocflcodes.Fault
	if other, twice := v.ids[said.ID]; twice {
		faults = append(faults, ocflcodes.Fault{Code: "E037", Text: "its id is that of " + other})
	}
	v.ids[said.ID] = at
	if v.spec == "1.0" && strings.Contains(said.Type, "/1.1/") {
		faults = append(faults, ocflcodes.Fault{Code: "E081", Text: "it is of a later OCFL than its storage root"})
	}
	if v.layout != nil {
		if want, err := v.layout.Resolve(said.ID); err != nil || want != at {
			faults = append(faults, ocflcodes.Fault{Code: "E083", Text: "by the storage root's layout it belongs at " + want},
				ocflcodes.Fault{Code: "W014", Text: "by the storage root's layout it belongs at " + want})
		}
	}
	v.more(at, faults)
	return nil
}
