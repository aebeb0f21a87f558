package describe

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"bagpipe/layout"
)

// Roles gives each file of an inventory its role, anew, and counts them:
//
//	main      data of the principal file's kind, with the files that belong to it
//	metadata  side-cars
//	view      previews and overviews that came along
//	attached  everything else
//
// The principal file is main whatever its name, and of an object without one what else there is: files that
// are no side-cars, or side-cars alone.
//
// It gives the counts and bytes by role, and how many files have the name and the size of one that was counted before.
func Roles(v *layout.Inventory, o *Object) map[string]any {
	principal, _ := o.Entity["kind"].(string)
	out := map[string]any{}
	same := map[string]int{}
	repeated := 0
	roles := rolesOf(v, principal, o.Entity["file"])
	for p, f := range v.Files {
		f.Role = roles[p]
		v.Files[p] = f
		of, _ := out[f.Role].(map[string]any)
		if of == nil {
			of = map[string]any{"files": int64(0), "bytes": int64(0)}
			out[f.Role] = of
		}
		of["files"], of["bytes"] = of["files"].(int64)+1, of["bytes"].(int64)+f.Size
		key := fmt.Sprintf("%s/%d", path.Base(p), f.Size)
		if same[key]++; same[key] > 1 {
			repeated++
		}
	}
	out["bytes"] = v.Bytes()
	if repeated > 0 {
		out["sameNameAndSize"] = repeated
	}
	return out
}

func rolesOf(v *layout.Inventory, principal string, file any) map[string]string {
	roles, of := map[string]string{}, map[string]int{}
	for p := range v.Files {
		roles[p] = role(p, principal)
		if p == file {
			roles[p] = "main"
		}
		of[roles[p]]++
	}
	for _, lesser := range []string{"attached", "metadata", "view"} {
		if of["main"] > 0 || of[lesser] == 0 {
			continue
		}
		for p, r := range roles {
			if r == lesser {
				roles[p] = "main"
			}
		}
		break
	}
	return roles
}

var mainEndings = map[string]string{".shx": Vector, ".dbf": Vector, ".sbn": Vector, ".sbx": Vector, ".cpg": Vector, ".qix": Vector}

var metadataEndings = map[string]bool{".xml": true, ".prj": true, ".rpb": true, ".rpc": true, ".imd": true, ".met": true, ".xmp": true, ".json": true, ".csv": true, ".rule": true, ".html": true, ".htm": true, ".txt": true}

func role(p, principal string) string {
	name := strings.ToLower(path.Base(p))
	ending := path.Ext(name)
	stem := strings.TrimSuffix(name, ending)
	switch {
	case ending == ".ovr" || ending == ".rrd":
		return "view"
	case KindOf(name) == Image && (IsPreview(stem) || principal == Raster || principal == Vector):
		return "view"
	case metadataEndings[ending] || slices.Contains(worldFiles, ending):
		return "metadata"
	case principal != "" && (KindOf(name) == principal || mainEndings[ending] == principal):
		return "main"
	}
	return "attached"
}

// IsPreview reports whether a picture's name, without its ending, says that it shows
// another file.
func IsPreview(stem string) bool {
	for _, word := range []string{"preview", "thumb", "thumbnail", "browse", "quicklook"} {
		if stem == word || strings.HasSuffix(stem, "_"+word) || strings.HasSuffix(stem, "-"+word) || strings.HasSuffix(stem, "."+word) {
			return true
		}
	}
	return false
}
