package bags

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"bagpipe/bags/archive"
	"bagpipe/bags/files"
	"bagpipe/bags/finding"
	"bagpipe/bags/tagfile"
	"bagpipe/layout"
)

// sectionSerialization names the section of 0.97 with the rules that RFC 8493 left out.
const sectionSerialization = "draft-kunze-bagit-14, 4"

func openSerialized(ctx context.Context, file string, o ValidateOptions) (*validator, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	view, err := archive.OpenView(ctx, f, o.Limits, tagfile.IsSpecified)
	var broken *files.Error
	if err != nil && !errors.As(err, &broken) {
		return nil, err
	}
	base := baseOf(view)
	v := newValidator(treeWithin(view, base), &withinBase{View: view, base: base}, o)
	v.report.Bag, v.report.Archive = layout.EncodePath(view.Name), view.Format
	for _, w := range view.Warnings {
		v.warn(finding.Archive, "", "", w)
	}
	if broken != nil {
		v.broken(broken)
		return v, nil
	}
	v.serialization(view, base)
	return v, nil
}

// treeWithin lists the bag in the archive's folder base, "" for the archive's own top.
func treeWithin(view *archive.View, base string) *files.Tree {
	prefix := base + "/"
	if base == "" {
		prefix = ""
	}
	t := &files.Tree{Dir: view.Name}
	for _, m := range view.Members {
		rel, ok := strings.CutPrefix(m.Path, prefix)
		if !ok {
			continue
		}
		e := files.Entry{Path: rel, Size: m.Size, Mode: m.Mode, Time: m.Time}
		if m.Mode.IsRegular() {
			t.Files = append(t.Files, e)
		} else {
			t.Others = append(t.Others, e)
		}
	}
	for _, d := range view.Folders {
		if rel, ok := strings.CutPrefix(d, prefix); ok && rel != "" {
			t.Folders = append(t.Folders, files.Entry{Path: rel, Mode: fs.ModeDir | files.FolderPerm})
		}
	}
	return t
}

// baseOf finds the bag: the archive's top where bagit.txt is there, else the only
// folder, or the only one with a bagit.txt.
func baseOf(view *archive.View) string {
	declares := func(p string) bool {
		folder, ok := view.Stat(p)
		return ok && !folder
	}
	if declares(tagfile.DeclarationFile) {
		return ""
	}
	var folders, declared []string
	for _, d := range view.Folders {
		if strings.Contains(d, "/") || isNoise(d) {
			continue
		}
		folders = append(folders, d)
		if declares(d + "/" + tagfile.DeclarationFile) {
			declared = append(declared, d)
		}
	}
	return cmp.Or(append(declared, append(folders, "")...)...)
}

// serialization reports what is wrong with how the bag lies in the archive.
func (f *findings) serialization(view *archive.View, base string) {
	if base == "" {
		f.warn(finding.Serialization, sectionSerialization, "", "the bag is not in a folder of its own in the archive")
		return
	}
	for _, top := range view.Top() {
		if top == base {
			continue
		}
		payload, _ := view.Stat(top + "/" + tagfile.PayloadDir)
		switch {
		case isNoise(top):
			f.warn(finding.Serialization, sectionSerialization, top, "beside the bag; passed over")
		case payload:
			f.fail(finding.Serialization, sectionSerialization, top, "the archive holds more than one bag")
		default:
			f.fail(finding.Serialization, sectionSerialization, top, "stands beside the bag's folder in the archive")
		}
	}
	if stem := archiveStem(view.Name); stem != base {
		f.warn(finding.BaseName, sectionSerialization, "", "the bag in the archive is named "+layout.EncodePath(base)+", the archive "+layout.EncodePath(stem))
	}
}

// archiveStem is an archive's name without what names its format.
func archiveStem(name string) string {
	if archive.FormatOfName(name) == archive.None {
		return name
	}
	return archive.FolderName(name)
}

// withinBase looks a bag's paths up below its folder in the archive.
type withinBase struct {
	*archive.View
	base string
}

func (b *withinBase) Open(p string) (io.ReadCloser, error) { return b.View.Open(path.Join(b.base, p)) }

func (b *withinBase) Hash(ctx context.Context, plan []files.Planned, o files.HashOptions, each func(files.Hashed) error) error {
	for i := range plan {
		plan[i].Path = path.Join(b.base, plan[i].Path)
	}
	return b.View.Hash(ctx, plan, o, each)
}
