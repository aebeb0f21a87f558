package audit

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/guard"
	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// committed is one commit that is looked at.
type committed struct {
	gitstore.Commit
	a           *Auditor
	read        *reader
	before, now gitstore.View
	items       []layout.ItemID
	out         result
	explained   bool // one event made its record, or none changed it
	unusable    []unusable
}

// unusable is a file of an item that cannot be read.
type unusable struct {
	item layout.ItemID
	text string
}

// commit looks at the i-th of some, of which most follow the one before.
func (a *Auditor) commit(ctx context.Context, read *reader, commits []gitstore.Hash, i int) (result, error) {
	c := &committed{a: a, read: read}
	var err error
	if c.Commit, c.now, err = read.Commit(commits[i]); err != nil {
		return result{}, err
	}
	for _, parent := range c.Parents {
		if a.listed != nil && (i == 0 || parent != commits[i-1]) && !a.isListed(parent) { // as where a commit-graph file says otherwise
			c.find(Object, "", "Git does not lead from it to its parent "+parent.String())
		}
	}
	if err := c.signature(); err != nil {
		return c.out, err
	}
	pinned, err := c.changed()
	if err != nil {
		return c.out, err
	}
	defer func() {
		for _, id := range c.items {
			if !c.explained {
				read.doubted[id] = true
			}
		}
	}()
	switch {
	case len(c.Parents) > 1 && c.Committer.Email == gitstore.JoinerEmail:
		return c.out, c.join(ctx)
	case len(c.Parents) > 1:
		c.out.kind = byHand
		if ledger.ByBagpipe(c.Commit) {
			c.find(Event, "", "it has several parents, which no engine gives a commit")
		} else {
			c.tellsOfNone("is a merge")
		}
		return c.out, nil
	}
	byBagpipe := ledger.ByBagpipe(c.Commit)
	if byBagpipe {
		for _, wrong := range c.unusable {
			c.find(Event, wrong.item, wrong.text)
		}
	}
	switch {
	case !byBagpipe && len(c.items)+len(pinned) > 0:
		c.out.kind = byHand
		err = c.tells()
	case !byBagpipe:
		c.tellsOfNone("changes no record")
	case trailer(c.Commit, "Bagpipe-Answers") != "" && len(c.items) > 0:
		c.out.kind = answers
		err = c.answer()
	default:
		err = c.own(ctx, pinned)
	}
	return c.out, err
}

func (c *committed) find(kind string, id layout.ItemID, text string) {
	if c.out.findings == nil {
		c.out.findings = new([]Finding)
	}
	*c.out.findings = append(*c.out.findings, Finding{Commit: c.Hash.String(), Item: id, Kind: kind, Text: text})
}

// changed lists the items and pinned definitions that the commit changed, and reads every file
// that its first parent did not have.
func (c *committed) changed() (pinned map[string][]byte, err error) {
	if len(c.Parents) > 0 {
		if c.before, err = c.read.At(c.Parents[0]); err != nil {
			return nil, err
		}
	}
	err = c.read.Diff(c.before, c.now, func(f gitstore.Difference) error {
		data, err := c.read.Blob(f, f.Is)
		if err != nil {
			return err
		}
		id, rest, ok := layout.ItemOfPath(f.Path)
		var was []byte
		if ok && rest == layout.DeliveryJSON {
			if was, err = c.read.Blob(f, f.Was); err != nil {
				return err
			}
		}
		if ok && data != nil {
			if err := ledger.Readable(rest, data); err != nil {
				c.unusable = append(c.unusable, unusable{id, "it leaves a " + rest + " that cannot be read: " + err.Error()})
			}
		}
		switch {
		case ok && ledger.IsJudged(rest, was, data):
			c.items = append(c.items, id)
		case ok:
		case strings.HasPrefix(f.Path, layout.PinnedDir+"/"):
			if pinned == nil {
				pinned = map[string][]byte{}
			}
			pinned[f.Path] = data
		default:
			c.out.list = c.out.list || f.Path == layout.SignersFile
			lines, err := ledger.MovedLines(c.read.Scan, f)
			c.items = slices.AppendSeq(c.items, maps.Keys(lines))
			return err
		}
		return nil
	})
	slices.Sort(c.items)
	c.items = slices.Compact(c.items)
	return pinned, err
}

// join holds a join commit against the join of its parents.
func (c *committed) join(ctx context.Context) error {
	c.out.kind = joined
	both, is, err := guard.IsJoin(ctx, c.a.ledger, c.Commit)
	if err != nil {
		return err
	}
	if is { // the others' records are as a commit before it left them
		c.items = slices.DeleteFunc(c.items, func(id layout.ItemID) bool { return !both[id] })
	}
	if !is {
		c.find(Join, "", "it is not the join of its parents")
		return nil
	}
	var last time.Time
	for _, p := range c.Parents {
		v, err := c.a.ledger.Store.At(p)
		if err != nil {
			return err
		}
		parent, err := v.About()
		if err != nil {
			return err
		}
		if parent.When.After(last) {
			last = parent.When
		}
	}
	subject, _, _ := strings.Cut(guard.JoinMessage(c.Parents[0], c.Parents[1]), "\n")
	others := slices.ContainsFunc(c.Trailers, func(t gitstore.Trailer) bool {
		return t.Key != "Bagpipe-Diverged" && (t.Key != "Bagpipe-Agent" || t.Value != "bagpipe join")
	})
	if c.Subject != subject || c.Body != "" || others || !c.When.Equal(last) {
		c.find(Join, "", "it is not worded, or not dated, as the join of its parents")
	}
	return nil
}

// own holds a commit by a Bagpipe against the event that it says it is.
func (c *committed) own(ctx context.Context, pinned map[string][]byte) error {
	for p, data := range pinned {
		if data == nil || layout.PinnedPath(ledger.DigestOf(data)) != p {
			c.find(Definition, "", p+" is not what its name says")
		}
	}
	switch {
	case len(c.items) == 0:
		c.tellsOfNone("changes no record")
		return nil
	case len(c.items) > 1:
		c.out.kind = event
		c.find(Event, c.items[0], "it changes the records of more than one item")
		return nil
	}
	c.out.kind = event
	id := c.items[0]
	before, now, err := c.records(id)
	if err != nil {
		return err
	}
	plans := c.a.ledger.PlansAt(c.now)
	if c.explained = before.Retired != now.Retired; c.explained {
		return c.retired(ctx, id, before, now, plans)
	}
	if c.explained = before.Execution != nil && bytes.Equal(before.Execution, now.Execution); c.explained {
		c.asIs(id, before, now, plans)
		return nil
	}
	if trailer(c.Commit, "Bagpipe-Recovered") != "" {
		return c.recovered(id, before, now)
	}
	site := layout.Name(trailer(c.Commit, "Bagpipe-Site"))
	h, tr, err := c.read.replay(id, site, before, now, plans)
	if err != nil {
		c.find(Event, id, "it is no lawful event: "+err.Error())
		return nil
	}
	c.explained = true
	c.described(id, before, now, h, plans)
	of := before
	if _, started := h.event.(state.Start); started { // it says what it makes of the item
		of = now
	}
	m, err := c.read.manifest(id, of.Manifest)
	if err != nil {
		c.find(Event, id, "it leaves a manifest that cannot be read: "+err.Error())
		return nil
	}
	if at := timeOf(h.event); !at.IsZero() && at.Sub(c.When).Abs() > asides {
		c.find(Event, id, fmt.Sprintf("it is dated %s, and its commit %s", layout.FormatTime(at), layout.FormatTime(c.When)))
	}
	if end, ended := h.event.(state.End); ended && c.When.Sub(end.At) > asides { // which may lie after its commit, see timeOf
		c.find(Event, id, fmt.Sprintf("it is dated %s, and its commit %s", layout.FormatTime(end.At), layout.FormatTime(c.When)))
	}
	for _, wrong := range misworded(c.Commit, id, m, h, tr, site) {
		c.find(Words, id, wrong)
	}
	return nil
}

// retired holds a commit that takes an item's records out of the tip, or brings them back.
func (c *committed) retired(ctx context.Context, id layout.ItemID, before, now ledger.Records, plans state.Plans) error {
	c.asIs(id, before, now, plans)
	none, to := layout.Standing{}, ledger.Retired
	if now.Retired == none {
		to = ledger.Recalled
	}
	if is := trailer(c.Commit, "Bagpipe-To"); is != to {
		c.find(Words, id, fmt.Sprintf("its trailer Bagpipe-To says %q, and the item is %s", ledger.Clip(is, 100), to))
	}
	switch {
	case now.Absent(), now.Retired == none && now.Same(before):
	case now.Retired == none, before.Retired != none:
		c.find(Event, id, "it brings back other records than those that last stood")
	default:
		leads, err := guard.LeadsTo(ctx, c.a.ledger, now.Retired, c.Commit)
		if err != nil {
			return err
		}
		if !leads {
			c.find(Event, id, "the records last stood in a commit that does not lead to it")
		}
	}
	return nil
}

// asIs holds a commit that leaves the execution record alone, such as what a check of fixity
// found, to what anybody may change.
func (c *committed) asIs(id layout.ItemID, before, now ledger.Records, plans state.Plans) {
	if is := trailer(c.Commit, "Bagpipe-Item"); is != string(id) {
		c.find(Words, id, fmt.Sprintf("its trailer Bagpipe-Item says %q", ledger.Clip(is, 100)))
	}
	for _, wrong := range pretended(c.Commit, before.Retired != now.Retired) {
		c.find(Words, id, wrong)
	}
	c.judge(id, before, now, plans)
}

// recovered holds a commit that brings an item back from a deposit: the records of one that
// was not there, or of its next version just after those of the one before.
func (c *committed) recovered(id layout.ItemID, before, now ledger.Records) error {
	if is := trailer(c.Commit, "Bagpipe-Item"); is != string(id) {
		c.find(Words, id, fmt.Sprintf("its trailer Bagpipe-Item says %q", ledger.Clip(is, 100)))
	}
	if before.Execution != nil {
		last, err := c.before.About()
		if err != nil {
			return err
		}
		if trailer(last, "Bagpipe-Recovered") == "" || trailer(last, "Bagpipe-Item") != string(id) {
			c.find(Event, id, "it brings back an item that is there")
		}
	}
	m, err := layout.DecodeManifest(now.Manifest)
	switch {
	case err != nil:
		c.find(Event, id, "it leaves a manifest that cannot be read: "+err.Error())
	case m.Item != id:
		c.find(Event, id, "its manifest is that of item "+string(m.Item))
	case (m.Inventory == nil) != (now.Inventory == nil) || m.Inventory != nil && m.Inventory.Digest != ledger.DigestOf(now.Inventory):
		c.find(Inventory, id, "the inventory is not the one whose digest the manifest names")
	}
	return nil
}

// records are an item's files before the commit and in it.
func (c *committed) records(id layout.ItemID) (before, now ledger.Records, err error) {
	if len(c.Parents) > 0 {
		if before, err = ledger.StandingOf(c.a.ledger, c.before, id); err != nil {
			return before, now, err
		}
	}
	now, err = ledger.StandingOf(c.a.ledger, c.now, id)
	return before, now, err
}

// described holds the manifest and the inventory against the event, and each other.
func (c *committed) described(id layout.ItemID, before, now ledger.Records, h happened, plans state.Plans) {
	same := string(before.Manifest) == string(now.Manifest) && string(before.Inventory) == string(now.Inventory)
	switch h.event.(type) {
	case state.Start, state.End, state.Decide:
	default:
		if !same {
			c.find(Event, id, "it describes the item anew, which no event of its kind does")
		}
	}
	if same {
		return
	}
	m, err := c.read.manifest(id, now.Manifest)
	if err == nil && (now.Inventory != nil || bytes.Contains(now.Manifest, []byte(`"inventory"`))) { // the head leaves it out
		m, err = layout.DecodeManifest(now.Manifest)
	}
	if err != nil {
		c.find(Event, id, "it leaves a manifest that cannot be read: "+err.Error())
		return
	}
	if m.Item != id {
		c.find(Event, id, "its manifest is that of item "+string(m.Item))
	}
	if (m.Inventory == nil) != (now.Inventory == nil) || m.Inventory != nil && m.Inventory.Digest != ledger.DigestOf(now.Inventory) {
		c.find(Inventory, id, "the inventory is not the one whose digest the manifest names")
	}
	if _, started := h.event.(state.Start); !started {
		_, decided := h.event.(state.Decide)
		if err := onlyResult(before.Manifest, now.Manifest, c.now, decided); err != nil {
			c.find(Event, id, err.Error())
		}
	}
	c.judge(id, before, now, plans)
}

// judge tells of what nobody may change.
func (c *committed) judge(id layout.ItemID, before, now ledger.Records, plans state.Plans) {
	for _, breach := range guard.Judge(id, before, now, plans) {
		c.find(Event, id, breach)
	}
}
