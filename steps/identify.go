package steps

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"bagpipe/bags/files"
	"bagpipe/layout"
	"bagpipe/steps/decoder"
	"bagpipe/steps/describe"
	"bagpipe/steps/formats"
	"bagpipe/steps/views"
)

// works are the decoders that run as processes of their own. A program that runs robots
// begins with Decoder.
func works() map[string]func() (decoder.Work, error) {
	return map[string]func() (decoder.Work, error){workFormats: formats.NewWork, workDescribe: describe.NewWork, workViews: views.NewWork}
}

const workFormats = "formats"

// Decoder does the work of a process that decodes files, if this is one: ok is then true,
// and the program must end with the code at once. In any other process it does nothing.
func Decoder() (code int, ok bool) { return decoder.Main(works()) }

// identify says of every file of the object which format it has. The inventory has it
// then; the manifest has the object's formats.
func identify(ctx context.Context, c *Call) (Result, error) {
	tree, v, err := inventoried(ctx, c)
	if err != nil {
		return Result{}, err
	}
	file := ""
	if c.Signatures != nil {
		if file, err = c.Signatures(); err != nil {
			return Result{}, SystemFailure("signatures of formats: %w", err)
		}
	}
	w := decoder.New(decoder.Options{Work: workFormats, Memory: c.Limits.Memory})
	defer w.Close()
	found := map[string]int{}
	unknown, warned, signatures := 0, 0, ""
	for i := range tree.Files {
		name := tree.Files[i].Path
		path := layout.EncodePath(name)
		one, err := identifyFile(ctx, w, file, tree.At(name), name)
		if err != nil {
			return Result{}, fmt.Errorf("identify %s: %w", path, err)
		}
		if one.Unreadable != "" {
			return Result{}, SystemFailure("%s; put the file back, or put other signatures in force, then the step can be tried again", one.Unreadable)
		}
		f := v.Files[path]
		f.PUID, f.Format, f.Basis, f.Warning = one.ID, one.Name, one.Basis, one.Warning
		v.Files[path] = f
		if one.ID == "" {
			unknown++
		} else {
			found[one.ID]++
		}
		if one.Warning != "" {
			warned++
			c.logf("warning: %s: %s", path, one.Warning)
		}
		if one.Signatures != "" {
			signatures = one.Signatures
		}
	}
	ids := slices.SortedFunc(maps.Keys(found), func(a, b string) int { return found[b] - found[a] })
	message := fmt.Sprintf("%s, %s", layout.Count(len(tree.Files), "file"), layout.Count(len(ids), "format"))
	for _, n := range []struct {
		of   int
		what string
	}{{unknown, "not identified"}, {warned, "with warnings"}} {
		if n.of > 0 {
			message += fmt.Sprintf(", %d %s", n.of, n.what)
		}
	}
	return Result{Message: message, Inventory: v, Metadata: map[string]any{"formats": shortList(ids), "signatures": signatures}}, nil
}

// manyFormats is how many formats of an object its manifest has; the inventory has all.
const manyFormats = 40

// shortList is a JSON list, sorted, of the most frequent.
func shortList(ids []string) []any {
	ids = ids[:min(len(ids), manyFormats)]
	list := make([]any, 0, len(ids))
	for _, id := range slices.Sorted(slices.Values(ids)) {
		list = append(list, id)
	}
	return list
}

const maxWarning = 200 // bytes; a list of possible formats can be far longer

// identifyFile asks for one file. A file that makes its decoder fail has no format, and a
// warning.
func identifyFile(ctx context.Context, w *decoder.Worker, signatures, path, name string) (a formats.Answer, err error) {
	err = w.Ask(ctx, formats.Request{Path: layout.EncodePath(path), Name: filepath.Base(name), Signatures: signatures}, &a)
	var refused *decoder.Refused
	if errors.As(err, &refused) {
		a.Warning, err = "not identified: "+refused.Reason, nil
	}
	a.Warning = clip(a.Warning, maxWarning)
	return a, err
}

// clip shortens text to n bytes of whole characters.
func clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n--; n > 0 && text[n]&0xc0 == 0x80; n-- {
	}
	return text[:n] + "…"
}

// inventoried lists the object, and gives its inventory, which is made where no step has.
func inventoried(ctx context.Context, c *Call) (*files.Tree, *layout.Inventory, error) {
	tree, err := object(ctx, c)
	if err != nil {
		return nil, nil, failure(err)
	}
	if err := tree.CheckRegular(); err != nil {
		return nil, nil, failure(err)
	}
	if c.Inventory == nil {
		res, err := inventory(ctx, c)
		return tree, res.Inventory, err
	}
	v, err := layout.DecodeInventory(c.Inventory)
	if err != nil {
		return nil, nil, err
	}
	if _, err := inventoryOf(c, tree); err != nil { // the same files
		return nil, nil, err
	}
	return tree, &v, nil
}
