package steps

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"bagpipe/bags/files"
	"bagpipe/layout"
)

// The rules are: with each: object the rule that recognised the item says which files are
// an object. Its files stand in a folder of its name, below the folder that held all of
// them; one that is a single file is that file. What belongs to no object, and folders
// without files, stay with the drop alone.

// Parted is a folder with several objects side by side, as the rules see it.
type Parted struct {
	Objects []Object
	Left    []string // files that belong to none
	Why     string   // it is not parted; then there are none
	Deep    bool     // they lie at any depth: the folders they lie in say what they are
}

// Object is one of them.
type Object struct {
	Name  string   // a path whose last part is what its folder is called; any bytes
	Files []string // paths in the folder
	Whole bool     // it is one folder, the only one of Files
}

const eachObject = "object"

// splitObjects makes a child of each object.
func splitObjects(ctx context.Context, c *Call, s *splitting) (Result, error) {
	if info, err := os.Stat(c.Content); err == nil && !info.IsDir() {
		return Result{Status: Skipped, Message: "not applicable: it is one file"}, nil
	}
	if c.Objects == nil {
		return Result{}, wrongParam("each", "%s needs the rules, and there are none here", eachObject)
	}
	parted, err := c.Objects(ctx, c.Content)
	if err != nil {
		return Result{}, failure(err)
	}
	if len(parted.Objects) == 0 {
		return Result{Status: Skipped, Message: "not applicable: " + parted.Why}, nil
	}
	t, err := object(ctx, c)
	if err != nil {
		return Result{}, failure(err)
	}
	if err := t.CheckRegular(); err != nil {
		return Result{}, failure(err)
	}
	var chosen []string
	for _, o := range parted.Objects {
		chosen = append(chosen, o.Files...)
	}
	taken := partOf(t, chosen)
	placed := filepath.Join(c.Scratch, "placed")
	if err := os.Mkdir(placed, 0o755); err != nil {
		return Result{}, failure(err)
	}
	if err := files.Place(ctx, taken, placed, c.mayLink()); err != nil {
		return Result{}, failure(err)
	}
	children := make([]Child, len(parted.Objects))
	for i, o := range parted.Objects {
		from, err := gatherObject(c.Scratch, placed, i, o)
		if err != nil {
			return Result{}, failure(err)
		}
		children[i] = s.like
		children[i].From, children[i].Name, children[i].Label = from, o.Name, layout.EncodePath(o.Name)
		for dir := path.Dir(o.Files[0]); parted.Deep; dir = path.Dir(dir) {
			children[i].Above = append(children[i].Above, filepath.Join(c.Content, filepath.FromSlash(dir)))
			if dir == "." {
				break
			}
		}
	}
	return Result{Children: children, Message: objectsMessage(len(children), taken, parted.Left)}, nil
}

func objectsMessage(children int, taken *files.Tree, left []string) string {
	noun := "objects"
	if children == 1 {
		noun = "object"
	}
	text := fmt.Sprintf("%d %s: %s, %s", children, noun, layout.Count(len(taken.Files), "file"), layout.Count(taken.Bytes(), "byte"))
	if len(left) == 0 {
		return text
	}
	const shown = 5
	var names []string
	for _, name := range left[:min(shown, len(left))] {
		names = append(names, layout.EncodePath(name))
	}
	if len(left) > shown {
		names = append(names, "…")
	}
	return text + fmt.Sprintf("; belonging to none of them, and left with the drop: %s (%s)", layout.Count(len(left), "file"), strings.Join(names, ", "))
}

// gatherObject moves the links of one object into a folder of its own.
func gatherObject(scratch, placed string, n int, o Object) (layout.RelPath, error) {
	home := fmt.Sprintf("%s/%d", layout.ChildrenDir, n)
	name, top := path.Base(o.Name), commonFolder(o.Files)
	if len(o.Files) == 1 {
		name = path.Base(o.Files[0])
	}
	for _, p := range o.Files {
		to := filepath.Join(scratch, home, name)
		if len(o.Files) > 1 {
			to = filepath.Join(to, filepath.FromSlash(strings.TrimPrefix(p, top)))
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return "", err
		}
		if _, err := os.Lstat(to); err == nil {
			return "", fmt.Errorf("gather %s: %w", layout.EncodePath(o.Name), errors.New("one of its files is there twice"))
		}
		if err := os.Rename(filepath.Join(placed, filepath.FromSlash(p)), to); err != nil {
			return "", fmt.Errorf("gather %s: %w", layout.EncodePath(o.Name), err)
		}
	}
	return layout.RelPath(home + "/" + name), nil
}

// commonFolder is the folder that holds all of the files, with a slash behind it, or "".
func commonFolder(files []string) string {
	dir, _ := path.Split(files[0])
	for _, p := range files[1:] {
		for !strings.HasPrefix(p, dir) {
			dir, _ = path.Split(strings.TrimSuffix(dir, "/"))
		}
	}
	return dir
}
