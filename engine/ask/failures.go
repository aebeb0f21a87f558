package ask

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"bagpipe/engine/act"
	"bagpipe/engine/ledger"
	"bagpipe/engine/queue"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// FailureGroup is what waits for a person for the same reason.
type FailureGroup struct {
	ID       string           `json:"group"`
	Workflow string           `json:"workflow"`
	Step     layout.Name      `json:"step"` // "": the workflow as a whole, or the record
	Kind     string           `json:"kind"` // content, system, internal or record
	Message  string           `json:"message"`
	Count    int              `json:"count"`
	Oldest   time.Time        `json:"oldest"`
	Newest   time.Time        `json:"newest"`
	Examples []FailureExample `json:"examples"`
	Members  []act.Failing    `json:"-"`
}

// FailureExample is one item of a group.
type FailureExample struct {
	Item       layout.ItemID `json:"item"`
	Collection layout.Name   `json:"collection"`
	Label      string        `json:"label"`
	Message    string        `json:"message"`
	Parent     layout.ItemID `json:"parent,omitempty"` // it is a child of
}

// Failings lists what on an item waits for a person after a failure: not what is
// tolerated, nor what is of a workflow that was taken out of the queues.
func Failings(it *queue.Item) (out []act.Failing) {
	base := act.Failing{Item: it.ID, Collection: it.Collection, Label: it.Label, Since: it.Created}
	if it.Parent != nil {
		base.Parent = it.Parent.Item
	}
	if it.Broken != "" {
		base.Kind, base.Message = act.RecordKind, it.Broken
		return []act.Failing{base}
	}
	for r := range it.Runs {
		run := &it.Runs[r]
		if run.Status != state.Failed && (run.Status != state.InProgress || run.Plan.AfterFailure != state.Independent) {
			continue
		}
		steps := 0
		for i := range run.Steps {
			s := &run.Steps[i]
			if s.Status != state.Failed || run.Plan.Steps[i].Tolerated() {
				continue
			}
			steps++
			f := base
			f.Run, f.Step, f.Attempt = run.Name, layout.Name(run.Plan.Steps[i].Name), s.Current
			f.Kind, f.Message, f.Since = s.Kind, s.Message, s.Since
			out = append(out, f)
		}
		if steps == 0 && run.Internal != "" {
			f := base
			f.Run, f.Kind, f.Message, f.Since = run.Name, act.InternalKind, run.Internal, run.InternalAt
			out = append(out, f)
		}
	}
	return out
}

// FailureFilter narrows failures; zero fields do not.
type FailureFilter struct {
	Group    string // the beginning of a group's identifier
	Workflow string // accession or accession.1
	Step     layout.Name
	Message  string        // somewhere in the message, or in the group's
	Within   []layout.Name // the collections that the asker reaches; none: all
}

func (f FailureFilter) fits(x act.Failing, group, message string) bool {
	base, _ := state.Instance(x.Run)
	return strings.HasPrefix(group, f.Group) &&
		(len(f.Within) == 0 || slices.Contains(f.Within, x.Collection)) &&
		(f.Workflow == "" || f.Workflow == base || f.Workflow == x.Run) &&
		(f.Step == "" || f.Step == x.Step) &&
		(f.Message == "" || strings.Contains(x.Message, f.Message) || strings.Contains(message, f.Message))
}

// examples is how many items a group names.
const examples = 3

// Failures groups what waits for a person by workflow, step, kind and message, the
// largest group first.
func (li *Lists) Failures(f FailureFilter) []FailureGroup {
	groups := map[string]*FailureGroup{}
	for it := range li.index.Loaded().With(queue.Failed | queue.Broken) {
		for _, x := range Failings(it) {
			workflow, _ := state.Instance(x.Run)
			message := likeness(x)
			id := groupID(workflow, string(x.Step), x.Kind, message)
			if !f.fits(x, id, message) {
				continue
			}
			g := groups[id]
			if g == nil {
				g = &FailureGroup{ID: id, Workflow: workflow, Step: x.Step, Kind: x.Kind, Message: message, Oldest: x.Since, Newest: x.Since}
				groups[id] = g
			}
			g.add(x)
		}
	}
	out := make([]FailureGroup, 0, len(groups))
	for _, g := range groups {
		out = append(out, *g)
	}
	slices.SortFunc(out, func(a, b FailureGroup) int {
		return cmp.Or(-cmp.Compare(a.Count, b.Count), cmp.Compare(a.Workflow, b.Workflow), cmp.Compare(a.Step, b.Step), cmp.Compare(a.ID, b.ID))
	})
	return out
}

func (g *FailureGroup) add(x act.Failing) {
	g.Members = append(g.Members, x)
	g.Count++
	if x.Since.Before(g.Oldest) {
		g.Oldest = x.Since
	}
	if x.Since.After(g.Newest) {
		g.Newest = x.Since
	}
	if len(g.Examples) < examples {
		g.Examples = append(g.Examples, FailureExample{Item: x.Item, Collection: x.Collection, Label: x.Label, Message: x.Message, Parent: x.Parent})
	}
}

// groupID is eight hexadecimal digits that are the same for the same failures
// everywhere and always.
func groupID(of ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(of, "\x00")))
	return hex.EncodeToString(sum[:4])
}

var (
	hexes   = regexp.MustCompile(`\b0[xX][0-9a-fA-F]+\b|\b[0-9a-fA-F]*[0-9][0-9a-fA-F]*(-[0-9a-fA-F]{2,})*\b`)
	finding = regexp.MustCompile(`^bag is not valid: .+?: ([a-z]+(?:-[a-z]+)*): `)
	opening = regexp.MustCompile(`^(bag is not valid: (FILE: [a-z-]+: )?|exit code [0-9]+: )`) // words that are no label's
	further = regexp.MustCompile(` \(and [0-9]+ further errors?\b[^)]*\)$`)                    // of how many findings a bag has
	Numbers = regexp.MustCompile(`[0-9]+([.,:][0-9]+)*`)
)

// likeness is a message without what differs from item to item: its label, and
// numbers and identifiers, for which # stands.
func likeness(x act.Failing) string {
	m := finding.ReplaceAllString(further.ReplaceAllString(x.Message, ""), "bag is not valid: FILE: $1: ")
	if label := strings.TrimSpace(x.Label); len(label) >= 3 {
		begin := len(opening.FindString(m))
		m = m[:begin] + replaceWord(m[begin:], label, "LABEL")
	}
	m = hexes.ReplaceAllStringFunc(m, func(s string) string {
		if len(s) < 6 && !strings.HasPrefix(strings.ToLower(s), "0x") {
			return s
		}
		return "#"
	})
	return ledger.Clip(Numbers.ReplaceAllString(m, "#"), 500)
}

// replaceWord replaces a text where it is no part of a longer word.
func replaceWord(in, word, with string) string {
	joins := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	first, _ := utf8.DecodeRuneInString(word)
	last, _ := utf8.DecodeLastRuneInString(word)
	var out strings.Builder
	for from := 0; ; {
		at := strings.Index(in[from:], word)
		if at < 0 {
			return out.String() + in[from:]
		}
		at += from
		before, _ := utf8.DecodeLastRuneInString(in[:at])
		after, _ := utf8.DecodeRuneInString(in[at+len(word):])
		out.WriteString(in[from:at])
		if joins(before) && joins(first) || joins(last) && joins(after) {
			out.WriteString(word)
		} else {
			out.WriteString(with)
		}
		from = at + len(word)
	}
}

// Members are the failures that the groups hold.
func Members(groups []FailureGroup) (all []act.Failing) {
	for _, g := range groups {
		all = append(all, g.Members...)
	}
	return all
}
