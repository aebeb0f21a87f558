package warrant

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/recognise"
	"bagpipe/layout"

	"github.com/tidwall/gjson"
)

// Rule is a rule of retention and its name, FILE/N.
type Rule struct {
	recognise.Retention
	Name string
}

// Policy is the rules of retention in their order.
type Policy []Rule

// PolicyOf puts rules in order: those of a file with a lower order first.
func PolicyOf(files []*recognise.File) (p Policy) {
	files = slices.Clone(files)
	slices.SortFunc(files, func(x, y *recognise.File) int { return cmp.Or(x.Order-y.Order, cmp.Compare(x.Name, y.Name)) })
	for _, f := range files {
		for i, r := range f.Retention {
			p = append(p, Rule{r, fmt.Sprintf("%s/%d", f.Name, i+1)})
		}
	}
	return p
}

// PolicyAt reads the rules of a commit. A broken file has none.
func PolicyAt(v gitstore.View) (Policy, error) {
	entries, err := v.List(layout.RulesDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var files []*recognise.File
	for _, e := range entries {
		if e.IsDir || !strings.HasSuffix(e.Name, ".yaml") {
			continue
		}
		data, err := v.ReadFile(layout.RulesDir + "/" + e.Name)
		if err != nil {
			return nil, err
		}
		if f, err := recognise.Parse(layout.RulesDir+"/"+e.Name, data); err == nil {
			files = append(files, f)
		}
	}
	return PolicyOf(files), nil
}

// executions begins the paths of a condition that are asked of the execution record.
const executions = "execution."

// For is the first rule that fits an item; nil: none does.
func (p Policy) For(manifest, execution []byte, now time.Time) *Rule {
	values := func(path string) gjson.Result {
		if rest, is := strings.CutPrefix(path, executions); is {
			return gjson.GetBytes(execution, rest)
		}
		return gjson.GetBytes(manifest, path)
	}
	for i := range p {
		if is, _ := p[i].Which.Holds(values, now); is {
			return &p[i]
		}
	}
	return nil
}

// mostlyTwo is how many persons approve an item's disposal where no rule fits.
const mostlyTwo = 2

// Approvals is how many persons beside the proposer must approve an item's disposal.
func (p Policy) Approvals(manifest, execution []byte, now time.Time) int {
	if r := p.For(manifest, execution, now); r != nil {
		return r.Approvals
	}
	return mostlyTwo
}

// Lacks says what an item's disposal still wants, by the proposal and the rules; "": nothing.
func (s *Standing) Lacks(p Policy, id layout.ItemID, manifest, execution []byte, now time.Time) string {
	_, named := s.Items[id]
	need := p.Approvals(manifest, execution, now)
	switch {
	case !named:
		return "the proposal does not name the item"
	case len(s.Refused) > 0:
		return "refused by " + s.Refused[0].Person
	case len(s.Approved) < need:
		return fmt.Sprintf("%d of %d approvals", len(s.Approved), need)
	}
	return ""
}

// Lawful says why an item may not be disposed of by a proposal, as of a commit; "": it may.
func Lawful(ctx context.Context, h History, v gitstore.View, key string, id layout.ItemID, manifest, execution []byte, now time.Time) (why string, err error) {
	for _, c := range key {
		if c != '-' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return "its proposal has no name", nil
		}
	}
	if _, err := v.ReadFile(Path(key)); errors.Is(err, fs.ErrNotExist) {
		return "there is no proposal " + key, nil
	}
	s, err := Read(ctx, h, v, key)
	if err != nil {
		return err.Error(), nil //nolint:nilerr // a proposal that cannot be read allows nothing
	}
	p, err := PolicyAt(v)
	if err != nil {
		return "", err
	}
	return s.Lacks(p, id, manifest, execution, now), nil
}
