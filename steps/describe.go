package steps

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"bagpipe/bags/files"
	"bagpipe/layout"
	"bagpipe/steps/decoder"
	"bagpipe/steps/describe"
)

const workDescribe = "describe"

// manyDescribed is how many files of an object are looked into: so many of the data that something can be
// read of, the largest, and so many of its side-cars, those nearest the top.
const manyDescribed = 500

// describeObject says what the object's files say of themselves: of the object in the
// manifest, of every file in derived/STEP/describe.json. A file that cannot be read fails
// nothing: the report and the log say why.
func describeObject(ctx context.Context, c *Call) (Result, error) {
	business, err := businessParam(c.With)
	if err != nil {
		return Result{}, err
	}
	tree, v, err := inventoried(ctx, c)
	if err != nil {
		return Result{}, err
	}
	w := decoder.New(decoder.Options{Work: workDescribe, Memory: c.Limits.Memory})
	defer w.Close()
	var all []describe.File
	chosen, left := choose(tree)
	beside := sideCars(tree, chosen)
	for i, f := range chosen {
		facts, err := describeFile(ctx, w, tree, f.Path, beside[f.Path], business, c.Now())
		if err != nil {
			return Result{}, fmt.Errorf("describe %s: %w", layout.EncodePath(f.Path), err)
		}
		all = append(all, describe.File{Name: layout.EncodePath(f.Path), Size: f.Size, Facts: facts})
		for _, text := range append(slices.Clone(facts.Warnings), facts.Error) {
			if text != "" {
				c.logf("warning: %s: %s", layout.EncodePath(f.Path), text)
			}
		}
		if c.Progress != nil {
			c.Progress(int64(i+1), int64(len(chosen)))
		}
	}
	if left > 0 {
		c.logf("warning: %s that could be read are left out; of data the largest %d are described, of side-cars the %d nearest the top", layout.Count(left, "file"), manyDescribed, manyDescribed)
	}
	o := describe.Combine(all)
	metadata, err := o.Metadata()
	if err != nil {
		return Result{}, err
	}
	if err := keepGiven(c, o, metadata); err != nil {
		return Result{}, err
	}
	for _, text := range o.Warnings {
		c.logf("warning: %s", text)
	}
	metadata["details"] = describe.Roles(v, o)
	out, err := describeReport(c, all, o)
	return Result{Message: describeMessage(all, o, left), Metadata: replacing(c, metadata), Inventory: v, Outputs: out}, err
}

func describeMessage(all []describe.File, o *describe.Object, left int) string {
	warned, broken := len(o.Warnings), 0
	for _, f := range all {
		warned += len(f.Warnings)
		if f.Error != "" {
			broken++
		}
	}
	message := layout.Count(len(all)-broken, "file") + " described"
	for _, n := range []struct {
		of   int
		what string
	}{{left, "left out"}, {broken, "not read"}} {
		if n.of > 0 {
			message += fmt.Sprintf(", %d %s", n.of, n.what)
		}
	}
	if warned > 0 {
		message += ", " + layout.Count(warned, "warning")
	}
	return message
}

// describeReport writes what each file says.
func describeReport(c *Call, all []describe.File, o *describe.Object) ([]Output, error) {
	said := map[string]*describe.Facts{}
	for _, f := range all {
		said[f.Name] = f.Facts
	}
	data, err := layout.EncodeJSON(map[string]any{"schema": 1, "files": said, "warnings": append([]string{}, o.Warnings...)})
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(c.Scratch, reportOut)
	if err := errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(filepath.Join(dir, "describe.json"), data, 0o644)); err != nil {
		return nil, failure(err)
	}
	return []Output{{From: reportOut, To: layout.RelPath(layout.DerivedDir + "/" + string(c.Step))}}, nil
}

// businessParam are further XPaths for side-cars, by the key their values get.
func businessParam(with map[string]any) (map[string]string, error) {
	given, ok := with["business"]
	if !ok {
		return nil, nil
	}
	m, ok := given.(map[string]any)
	if !ok {
		return nil, wrongParam("business", "want XPaths by keys, as {notary: //notary}, got %v", given)
	}
	paths := map[string]string{}
	for key, p := range m {
		text, ok := p.(string)
		if !ok || describe.CheckXPath(text) != nil {
			return nil, wrongParam("business", "%s: %v is no XPath", key, p)
		}
		paths[key] = text
	}
	return paths, nil
}

// choose gives the files that something can be read of, and how many more there are.
func choose(tree *files.Tree) (chosen []files.Entry, left int) {
	var data, sideCars []files.Entry
	for _, f := range tree.Files {
		switch describe.KindOf(f.Path) {
		case "":
		case describe.Metadata:
			sideCars = append(sideCars, f)
		default:
			data = append(data, f)
		}
	}
	larger := func(a, b files.Entry) int { return -cmp.Compare(a.Size, b.Size) }
	slices.SortStableFunc(data, larger)
	slices.SortStableFunc(sideCars, func(a, b files.Entry) int {
		return cmp.Or(cmp.Compare(strings.Count(a.Path, "/"), strings.Count(b.Path, "/")), larger(a, b))
	})
	for _, all := range [][]files.Entry{data, sideCars} {
		n := min(len(all), manyDescribed)
		chosen, left = append(chosen, all[:n]...), left+len(all)-n
	}
	return chosen, left
}

// sideCars gives the files beside each of some files: by what follows its name, in lower case. Their names may differ from
// its own in case; where several do, the one that differs least is meant.
func sideCars(tree *files.Tree, of []files.Entry) map[string]map[string]string {
	const most = 50
	stemOf := func(name string) string { return strings.TrimSuffix(name, path.Ext(name)) }
	named := map[string][]string{} // by the stem in lower case
	out := make(map[string]map[string]string, len(of))
	for _, f := range of {
		stem := stemOf(f.Path)
		out[f.Path], named[foldedName(stem)] = map[string]string{}, append(named[foldedName(stem)], f.Path)
	}
	for _, e := range tree.Files {
		for at := len(path.Dir(e.Path)); at < len(e.Path); at++ {
			if e.Path[at] != '.' {
				continue
			}
			for _, name := range named[foldedName(e.Path[:at])] {
				ending, beside := strings.ToLower(e.Path[at:]), out[name]
				was, there := beside[ending]
				if there && unlike(name, was) <= unlike(name, e.Path) || !there && len(beside) == most {
					continue
				}
				beside[ending] = e.Path
			}
		}
	}
	return out
}

// foldedName is a path whose last name is in lower case; folders stay as they are.
func foldedName(p string) string {
	dir, name := path.Split(p)
	return dir + strings.ToLower(name)
}

// unlike tells how much the name of a side-car differs from its file's: in case, or in that of its ending alone.
func unlike(name, beside string) int {
	stem := strings.TrimSuffix(name, path.Ext(name))
	switch n := strings.HasPrefix(beside, stem); {
	case !n:
		return 2
	case beside[len(stem):] != strings.ToLower(beside[len(stem):]):
		return 1
	}
	return 0
}

// describeFile asks for one file and the files beside it.
func describeFile(ctx context.Context, w *decoder.Worker, tree *files.Tree, name string, beside map[string]string, business map[string]string, now time.Time) (*describe.Facts, error) {
	q := describe.Request{Path: layout.EncodePath(tree.At(name)), Name: path.Base(name), Beside: map[string]string{}, Business: business, Now: now}
	for ending, p := range beside {
		q.Beside[ending] = layout.EncodePath(tree.At(p))
	}
	facts := &describe.Facts{}
	err := w.Ask(ctx, q, facts)
	var refused *decoder.Refused
	if errors.As(err, &refused) {
		return &describe.Facts{Kind: describe.KindOf(name), Error: clip(refused.Reason, 500)}, nil
	}
	return facts, err
}

// replacing adds to a result's metadata what takes away the keys that the manifest has
// below the same members and the result has not, as results are merged into manifests.
func replacing(c *Call, now map[string]any) map[string]any {
	var m struct {
		Metadata map[string]any `json:"metadata"`
	}
	if json.Unmarshal(c.Manifest, &m) == nil {
		for key, v := range now {
			was, old := m.Metadata[key].(map[string]any)
			if is, ok := v.(map[string]any); ok && old {
				clearOld(was, is)
			}
		}
	}
	return now
}

func clearOld(was, is map[string]any) {
	for key, old := range was {
		v, there := is[key]
		below, a := old.(map[string]any)
		now, b := v.(map[string]any)
		switch {
		case !there:
			is[key] = nil
		case a && b:
			clearOld(below, now)
		}
	}
}
