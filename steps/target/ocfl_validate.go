package target

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/srerickson/ocfl-go"
	"github.com/srerickson/ocfl-go/fs/local"

	"bagpipe/layout"
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
	var options []ocfl.ObjectValidationOption
	if quick {
		options = append(options, ocfl.ValidationSkipDigest())
	}
	if roots, err := filepath.Glob(filepath.Join(escaped(dir), "0=ocfl_[0-9]*")); err != nil || len(roots) == 0 {
		r.object(ctx, fsys, ".", options)
	} else if err := r.storage(ctx, fsys, dir, options); err != nil {
		return r, err
	}
	r.Valid = !slices.ContainsFunc(r.Findings, func(f OCFLFinding) bool { return f.Severity == "error" })
	return r, ctx.Err()
}

func escaped(dir string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(dir)
}

func (r *OCFLReport) object(ctx context.Context, fsys *local.FS, at string, options []ocfl.ObjectValidationOption) {
	r.Objects++
	v := ocfl.ValidateObject(ctx, fsys, at, options...)
	for _, err := range v.Errors() {
		r.add(at, "error", err)
	}
	for _, err := range v.WarnErrors() {
		r.add(at, "warning", err)
	}
}

// printable keeps what an inventory says from steering a terminal.
func printable(r rune) rune {
	if unicode.IsPrint(r) {
		return r
	}
	return unicode.ReplacementChar
}

func (r *OCFLReport) add(at, severity string, err error) {
	f := OCFLFinding{Object: layout.EncodePath(at), Severity: severity, Text: strings.Map(printable, err.Error())}
	var coded *ocfl.ValidationError
	if errors.As(err, &coded) {
		f.Code = coded.Code
	}
	r.Findings = append(r.Findings, f)
}

// storage walks a storage root: below it are folders, objects, and nothing between.
func (r *OCFLReport) storage(ctx context.Context, fsys *local.FS, dir string, options []ocfl.ObjectValidationOption) error {
	if _, err := ocfl.NewRoot(ctx, fsys, "."); err != nil {
		r.Findings = append(r.Findings, OCFLFinding{".", "E069", "error", err.Error()})
	}
	var walk func(at string) error
	walk = func(at string) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		entries, err := os.ReadDir(filepath.Join(dir, filepath.FromSlash(at)))
		if err != nil {
			return err
		}
		if slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return strings.HasPrefix(e.Name(), "0=ocfl_object_") }) {
			r.object(ctx, fsys, at, options)
			return nil
		}
		if len(entries) == 0 {
			r.Findings = append(r.Findings, OCFLFinding{layout.EncodePath(at), "E073", "error", "an empty folder in the storage root"})
		}
		for _, e := range entries {
			name := path.Join(at, e.Name())
			switch {
			case at == "." && (e.Name() == "extensions" || !e.IsDir()): // the root's own
			case e.IsDir():
				if err := walk(name); err != nil {
					return err
				}
			default:
				r.Findings = append(r.Findings, OCFLFinding{layout.EncodePath(name), "E072", "error", "a file between the storage root and its objects"})
			}
		}
		return nil
	}
	return walk(".")
}
