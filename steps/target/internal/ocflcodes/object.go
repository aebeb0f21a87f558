package ocflcodes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
)

const (
	inventoryName = "inventory.json"
	objectPrefix  = "ocfl_object_"
)

var declarationName = regexp.MustCompile(`^([0-9])=(ocfl_object_|ocfl_)([0-9]+\.[0-9]+)$`)

// looksDeclared reports whether a file is meant to declare what a folder is.
func looksDeclared(name string) bool {
	return strings.HasPrefix(name, "0=") || strings.Contains(name, "=ocfl") || strings.HasPrefix(name, "ocfl_object")
}

// declarations judges the names and texts of the files that declare an object or a storage root;
// codes are, in their order, those of the pattern, T, 0, the value, the number of files, the text.
func (f *faults) declarations(dir string, entries []fs.DirEntry, prefix string, codes [6]string) (version string) {
	count := 0
	for _, e := range entries {
		if e.IsDir() || !looksDeclared(e.Name()) {
			continue
		}
		tag, value, cut := strings.Cut(e.Name(), "=")
		switch {
		case !cut || !declarationName.MatchString(e.Name()) && tag == "0" && strings.HasPrefix(value, prefix):
			f.add(codes[0], fmt.Sprintf("the declaration %q is none of NAMASTE", e.Name()))
			f.add(codes[1], fmt.Sprintf("the declaration %q is not T=value", e.Name()))
			continue
		case tag != "0":
			f.add(codes[2], fmt.Sprintf("the declaration %q does not begin with 0=", e.Name()))
			continue
		case !strings.HasPrefix(value, prefix) || prefix == "ocfl_" && strings.HasPrefix(value, objectPrefix):
			f.add(codes[3], fmt.Sprintf("the declaration %q does not say %s", e.Name(), prefix))
			continue
		}
		count++
		version = strings.TrimPrefix(value, prefix)
		if text, err := os.ReadFile(filepath.Join(dir, e.Name())); err != nil || string(text) != value+"\n" {
			f.add(codes[5], fmt.Sprintf("the text of %s is not its value and a line end", e.Name()))
		}
	}
	if count != 1 {
		f.add(codes[4], fmt.Sprintf("there are %d declarations", count))
	}
	return version
}

// Object judges an object in a folder of this machine: names, declarations and inventories. seen
// are the inodes of the storage root so far; an error is of the machine alone.
func Object(ctx context.Context, dir string, seen map[[2]uint64]bool) ([]Fault, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	o := objectFaults{dir: dir}
	o.spec = o.declarations(dir, entries, objectPrefix, [6]string{"E002", "E004", "E005", "E006", "E003", "E007"})
	if o.spec == "" {
		o.spec = "1.1"
	}
	o.root(entries)
	top, err := o.inventory(".")
	if errors.Is(err, fs.ErrNotExist) {
		o.add("E063", "there is no inventory.json")
	} else if err != nil {
		return nil, err
	}
	var onDisk []string
	for _, e := range entries {
		if e.IsDir() && versionName.MatchString(e.Name()) {
			onDisk = append(onDisk, e.Name())
		}
	}
	slices.SortFunc(onDisk, func(a, b string) int { return number(a) - number(b) })
	o.sequence(onDisk)
	for _, name := range onDisk {
		if err := o.versionFolder(name, top); err != nil {
			return nil, err
		}
	}
	if top != nil {
		o.fixityThere(top)
		o.versionsThere(top, onDisk)
		o.copyInHead(top, onDisk)
	}
	err = o.links(ctx, seen)
	return o.faults, err
}

// copyInHead judges the copy of the inventory in the head version, which may be left out.
func (o *objectFaults) copyInHead(top object, onDisk []string) {
	value, _ := top.get("head")
	head, _ := value.(string)
	if !slices.Contains(onDisk, head) {
		return
	}
	is, err := os.ReadFile(filepath.Join(o.dir, inventoryName))
	there, err2 := os.ReadFile(filepath.Join(o.dir, head, inventoryName))
	if err == nil && err2 == nil && !bytes.Equal(is, there) {
		o.add("E064", head+"/"+inventoryName+" is not as "+inventoryName)
	}
}

type objectFaults struct {
	faults
	dir, spec string
	before    string // OCFL's version by the inventory of the version before
}

// fixityThere wants the files of which further digests are given.
func (o *objectFaults) fixityThere(top object) {
	value, _ := top.get("fixity")
	all, _ := value.(object)
	for _, m := range all {
		block, _ := m.value.(object)
		for name := range pathsOf(block) {
			if at := filepath.FromSlash(name); filepath.IsLocal(at) {
				if _, err := os.Lstat(filepath.Join(o.dir, at)); errors.Is(err, fs.ErrNotExist) {
					o.add("E093", fmt.Sprintf("fixity: %s: %q is not there", m.name, name))
				}
			}
		}
	}
}

// pathsOf gives the paths of what maps digests to paths, each with its digest.
func pathsOf(block object) map[string]string {
	all := map[string]string{}
	for _, d := range block {
		list, _ := d.value.([]any)
		for _, one := range list {
			if name, is := one.(string); is {
				all[name] = strings.ToLower(d.name)
			}
		}
	}
	return all
}

// older judges the inventory of a version before against the object's: no content has two digests of one algorithm, and OCFL's
// version only grows.
func (o *objectFaults) older(name string, own, top object) {
	kind, _ := own.get("type")
	if text, _ := kind.(string); strings.HasSuffix(text, "/spec/#inventory") {
		if o.before != "" && text < o.before {
			o.add("E103", fmt.Sprintf("%s is of an older OCFL than the version before", path.Join(name, inventoryName)))
		}
		o.before = text
	}
	was, _ := own.get("digestAlgorithm")
	is, _ := top.get("digestAlgorithm")
	if a, b := fmt.Sprint(was), fmt.Sprint(is); a != b {
		return
	}
	mine, _ := own.get("manifest")
	theirs, _ := top.get("manifest")
	block, _ := mine.(object)
	now, _ := theirs.(object)
	digests := pathsOf(now)
	for at, digest := range pathsOf(block) {
		if other := digests[at]; other != "" && other != digest {
			o.add("E092", fmt.Sprintf("%s has another digest for %q than the object's inventory", path.Join(name, inventoryName), at))
		}
	}
}

// root judges what stands in the object's folder.
func (o *objectFaults) root(entries []fs.DirEntry) {
	for _, e := range entries {
		name := e.Name()
		folder := e.IsDir() && (name == "extensions" || name == "logs" || versionName.MatchString(name))
		file := e.Type().IsRegular() && (looksDeclared(name) || name == inventoryName || strings.HasPrefix(name, inventoryName+"."))
		if !folder && !file {
			o.add("E001", name+" does not belong into an object")
		}
		if e.IsDir() && name == "extensions" {
			below, err := os.ReadDir(filepath.Join(o.dir, name))
			if err == nil && slices.ContainsFunc(below, func(b fs.DirEntry) bool { return !b.IsDir() }) {
				o.add("E067", "extensions holds a file")
			}
		}
	}
}

// inventory judges an inventory and its sidecar.
func (o *objectFaults) inventory(at string) (object, error) {
	data, err := os.ReadFile(filepath.Join(o.dir, at, inventoryName))
	if err != nil {
		return nil, err
	}
	spec := o.spec
	v, _ := decode(data) // its own judge tells
	top, _ := v.(object)
	kind, _ := top.get("type")
	if text, _ := kind.(string); at != "." && strings.HasSuffix(text, "/1.0/spec/#inventory") {
		spec = "1.0" // a version may be older than its object
	}
	for _, f := range Inventory(data, spec) {
		f.Text = path.Join(at, inventoryName) + ": " + f.Text
		o.faults = append(o.faults, f)
	}
	o.sidecar(at, top)
	return top, nil
}

var sidecarText = regexp.MustCompile(`^[0-9a-fA-F]+[ \t]+inventory\.json\n?$`)

func (o *objectFaults) sidecar(at string, top object) {
	all, err := filepath.Glob(filepath.Join(escaped(filepath.Join(o.dir, at)), inventoryName+".*"))
	if err != nil || len(all) == 0 {
		o.add("E058", path.Join(at, inventoryName)+" has no sidecar")
		return
	}
	algorithm, _ := top.get("digestAlgorithm")
	name, _ := algorithm.(string)
	if !slices.ContainsFunc(all, func(p string) bool { return strings.HasSuffix(p, inventoryName+"."+name) }) {
		o.add("E059", fmt.Sprintf("the sidecar of %s is not of %s", path.Join(at, inventoryName), name))
		if at != "." || len(all) > 0 {
			o.add("E058", fmt.Sprintf("%s has no sidecar of %s", path.Join(at, inventoryName), name))
		}
		return
	}
	text, err := os.ReadFile(filepath.Join(o.dir, at, inventoryName+"."+name))
	if err == nil && !sidecarText.Match(text) {
		o.add("E061", fmt.Sprintf("the sidecar of %s is no digest and %s", path.Join(at, inventoryName), inventoryName))
	}
}

func escaped(dir string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(dir)
}

// versionFolder judges a version's folder, and its inventory against the object's.
func (o *objectFaults) versionFolder(name string, top object) error {
	entries, err := os.ReadDir(filepath.Join(o.dir, name))
	if err != nil {
		return err
	}
	content := (&inventory{top: top}).contentDir()
	for _, e := range entries {
		switch {
		case e.IsDir() && e.Name() == content:
			if err := o.empty(path.Join(name, content)); err != nil {
				return err
			}
		case e.IsDir() || e.Name() == inventoryName || strings.HasPrefix(e.Name(), inventoryName+"."):
		default:
			o.add("E015", path.Join(name, e.Name())+" does not belong there")
		}
	}
	own, err := o.inventory(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || top == nil {
		return err
	}
	for key, code := range map[string]string{"id": "E110", "contentDirectory": "E020"} {
		was, _ := own.get(key)
		is, _ := top.get(key)
		a, _ := was.(string)
		b, _ := is.(string)
		if key == "contentDirectory" {
			a, b = (&inventory{top: own}).contentDir(), (&inventory{top: top}).contentDir()
		}
		if a != b {
			o.add(code, fmt.Sprintf("%s is %q in %s, and %q in the object", key, a, path.Join(name, inventoryName), b))
		}
	}
	o.older(name, own, top)
	if head, _ := own.get("head"); head != name {
		o.add("E040", fmt.Sprintf("head is %v in %s", head, path.Join(name, inventoryName)))
	}
	return nil
}

// empty finds folders without content: a whole version's is W003.
func (o *objectFaults) empty(at string) error {
	var walk func(at string, top bool) error
	walk = func(at string, top bool) error {
		entries, err := os.ReadDir(filepath.Join(o.dir, filepath.FromSlash(at)))
		if err != nil {
			return err
		}
		switch {
		case len(entries) == 0 && top:
			o.add("W003", at+" is empty")
		case len(entries) == 0:
			o.add("E024", at+" is empty")
		}
		for _, e := range entries {
			if e.IsDir() {
				if err := walk(path.Join(at, e.Name()), false); err != nil {
					return err
				}
			}
		}
		return nil
	}
	return walk(at, true)
}

// versionsThere compares the versions of the inventory with their folders.
func (o *objectFaults) versionsThere(top object, onDisk []string) {
	value, _ := top.get("versions")
	versions, _ := value.(object)
	for _, name := range onDisk {
		if _, is := versions.get(name); !is && versions != nil {
			o.add("E046", name+" is a folder, and no version of the inventory")
		}
	}
	for _, v := range versions {
		if !slices.Contains(onDisk, v.name) {
			o.add("E046", v.name+" is a version of the inventory, and no folder")
			o.add("E010", v.name+" is a version of the inventory, and no folder")
		}
	}
}

// links finds links: soft ones, and files that are there under two names.
func (o *objectFaults) links(ctx context.Context, seen map[[2]uint64]bool) error {
	return filepath.WalkDir(o.dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return errors.Join(err, ctx.Err())
		}
		rel, err := filepath.Rel(o.dir, p)
		if err != nil {
			return err
		}
		if !e.Type().IsRegular() {
			o.add("E090", rel+" is a link, or no file")
			return nil
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if s, ok := info.Sys().(*syscall.Stat_t); ok && s.Nlink > 1 {
			key := [2]uint64{uint64(s.Dev), s.Ino}
			if seen[key] {
				o.add("E090", rel+" is another file's hard link")
			}
			seen[key] = true
		}
		return nil
	})
}
