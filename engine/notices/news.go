package notices

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"bagpipe/engine/ask"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/notice"
	"bagpipe/engine/queue"
	"bagpipe/engine/remote/wire"
	"bagpipe/engine/schedule"
	"bagpipe/engine/state"
	"bagpipe/engine/timetable"
	"bagpipe/layout"
)

// digest makes a digest pending, if something is new.
func (t *Teller) digest(ctx context.Context, v gitstore.View, name string, n *notice.Wish, k *kept) error {
	if err := t.events(ctx, v, k); err != nil {
		return err
	}
	k.leave(t.settings.Current().Schedules)
	stand := t.standing()
	maps.Copy(stand, k.Events)
	if n.Tells(notice.Disposal) {
		due, err := t.due(ctx)
		if err != nil {
			return err
		}
		maps.Copy(stand, due)
	}
	if n.Tells(notice.Searches) {
		found, err := t.newHits(ctx, k)
		if err != nil {
			return err
		}
		maps.Copy(stand, found)
	}
	maps.DeleteFunc(stand, func(_ string, news News) bool { return !n.Tells(news.Kind) })
	d := Digest{Name: name, At: t.ledger.Now(), Workspace: t.ledger.Root, Counts: map[string]int{}, News: []News{}, Mended: []News{}}
	for _, key := range slices.Sorted(maps.Keys(stand)) {
		if _, told := k.Told[key]; told {
			continue
		}
		d.Counts[stand[key].Kind]++
		if len(d.News) < mostTold {
			d.News = append(d.News, stand[key])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(k.Told)) {
		if _, stands := stand[key]; stands || k.Told[key].Kind == notice.People || k.Told[key].Kind == notice.Disposal || !n.Tells(notice.Mended) {
			continue
		}
		d.Counts[notice.Mended]++
		if len(d.Mended) < mostTold {
			d.Mended = append(d.Mended, k.Told[key])
		}
	}
	passed := func(key string, _ News) bool { return strings.HasPrefix(key, once) }
	maps.DeleteFunc(stand, passed)
	maps.DeleteFunc(k.Events, passed)
	k.Told = stand
	k.trim()
	if len(d.Counts) == 0 {
		return nil
	}
	id := make([]byte, 16)
	if _, err := io.ReadFull(t.ledger.Random, id); err != nil {
		return err
	}
	d.ID, d.Text, k.At = "msg_"+hex.EncodeToString(id), d.line(), d.At
	k.Pending = &pending{Digest: d, First: d.At, Next: d.At}
	return nil
}

// mostFirings is how many firings of one schedule are remembered that did not complete: its state has no more.
const mostFirings = 20

// leave drops the firings of schedules that are gone. They are not mended.
func (k *kept) leave(schedules map[string]*timetable.Schedule) {
	gone := func(_ string, n News) bool { return n.Schedule != "" && schedules[n.Schedule] == nil }
	maps.DeleteFunc(k.Events, gone)
	maps.DeleteFunc(k.Told, gone)
}

// trim drops, of each schedule, what was told of its older firings.
func (k *kept) trim() {
	firings := map[string][]string{} // keys, by schedule
	for _, key := range slices.Sorted(maps.Keys(k.Events)) {
		if name := k.Events[key].Schedule; name != "" {
			firings[name] = append(firings[name], key)
		}
	}
	for _, keys := range firings {
		for _, key := range keys[:max(0, len(keys)-mostFirings)] {
			delete(k.Events, key)
			delete(k.Told, key)
		}
	}
}

// line tells the counts.
func (d *Digest) line() string {
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(d.Counts)) {
		n := d.Counts[kind]
		switch kind {
		case notice.Schedules:
			parts = append(parts, layout.Count(n, "firing")+" not completed")
		case notice.Workers:
			parts = append(parts, layout.Count(n, "worker")+" suspended")
		default:
			word := map[string]string{notice.Failures: "failed", notice.People: "for a person", notice.Stalls: "stalled", notice.Fixity: "damaged or healed",
				notice.Mended: "mended", notice.Disposal: "to dispose of", notice.Searches: "found by saved searches"}[kind]
			parts = append(parts, fmt.Sprintf("%d %s", n, word))
		}
	}
	return strings.Join(parts, ", ")
}

// standing is what the index says stands now.
func (t *Teller) standing() map[string]News {
	all := map[string]News{}
	for _, g := range t.ask.Failures(ask.FailureFilter{}) {
		for _, x := range g.Members {
			workflow, _ := state.Instance(x.Run)
			all[fmt.Sprintf("failure %s %s/%s %s", x.Item, x.Run, x.Step, x.Attempt)] = News{Kind: notice.Failures, Item: x.Item, Collection: x.Collection, Label: x.Label,
				Step: workflow + "/" + string(x.Step), Message: x.Message, Since: x.Since}
		}
	}
	t.index.Loaded().Settle(t.ledger.Now())
	for it := range t.index.Loaded().With(queue.Person) {
		for run, i := range it.Steps() {
			if it.Waits(run, i) {
				step := run.Plan.Steps[i].Name
				all[fmt.Sprintf("person %s %s/%s", it.ID, run.Name, step)] = News{Kind: notice.People, Item: it.ID, Collection: it.Collection, Label: it.Label,
					Step: run.Plan.Name + "/" + step, Since: run.Steps[i].Since}
			}
		}
	}
	for _, s := range t.ask.Stalled(0, 0) {
		if _, waits := all[fmt.Sprintf("person %s %s/%s", s.Item, s.Workflow, s.Step)]; waits {
			continue
		}
		workflow, _ := state.Instance(s.Workflow)
		all[fmt.Sprintf("stall %s %s/%s %s", s.Item, s.Workflow, s.Step, layout.FormatTime(s.Since))] = News{Kind: notice.Stalls, Item: s.Item, Label: s.Label,
			Step: workflow + "/" + string(s.Step), Message: s.Why, Since: s.Since}
	}
	t.suspended(all)
	return all
}

// suspended adds the workers that an engine suspended, as they lied.
func (t *Teller) suspended(all map[string]News) {
	data, err := os.ReadFile(t.ledger.Path(wire.StatusFile))
	if err != nil {
		return // no engine serves workers
	}
	var s wire.Status
	if json.Unmarshal(data, &s) != nil {
		return // of another version
	}
	for _, w := range s.Workers {
		if w.Suspect != "" {
			all["worker "+string(w.Name)] = News{Kind: notice.Workers, Label: string(w.Name), Message: "worker " + string(w.Name) + " is suspended: " + w.Suspect, Since: w.Since}
		}
	}
}

// events takes in what the commits tell since the last look. The first, and that after a history that
// was replaced, takes in what stands of the commits before: items held as damaged, and schedules whose last
// firing failed.
func (t *Teller) events(ctx context.Context, v gitstore.View, k *kept) error {
	since, err := gitstore.ParseHash(k.Commit)
	if err == nil {
		_, err = t.ledger.Store.At(since)
	}
	k.Commit = v.Commit().String()
	switch {
	case err != nil:
		return t.stood(k)
	case since == v.Commit():
		return nil
	}
	var found []gitstore.Commit
	for c, err := range t.ledger.Store.History(ctx, gitstore.HistoryOptions{From: v.Commit()}) {
		if err != nil {
			return err
		}
		if c.Hash == since { // what a sync joined from before it, its own site tells
			break
		}
		if trailer(c, "Bagpipe-Fixity") != "" || trailer(c, "Bagpipe-Schedule") != "" || trailer(c, "Bagpipe-Disposal") != "" {
			found = append(found, c)
		}
	}
	for _, c := range slices.Backward(found) {
		k.take(c)
	}
	return nil
}

// stood takes in what commits told before the first look, and stands.
func (t *Teller) stood(k *kept) error {
	for it := range t.index.Loaded().With(queue.Held) {
		if _, found, is := strings.Cut(it.HeldBy, ": "+state.HeldByFixity); is {
			k.Events[damaged+string(it.ID)] = News{Kind: notice.Fixity, Item: it.ID, Collection: it.Collection, Label: it.Label, Message: ledger.OneLine(found, 300)}
		}
	}
	unwell, err := schedule.Unwell(t.Schedule)
	for _, r := range unwell {
		due := layout.FormatTime(r.Last.Due)
		k.Events["schedule "+r.Name+" "+due] = News{Kind: notice.Schedules, Schedule: r.Name, Message: r.Last.Outcome + ", due " + due, Since: r.Last.Ended}
	}
	return err
}

// damaged begins the keys of items of which a copy is damaged.
const damaged = "fixity "

// said is what a commit says, in a line.
func said(c gitstore.Commit) string {
	var lines []string
	for line := range strings.Lines(c.Body) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return ledger.OneLine(strings.Join(lines, "; "), 300)
}

// take takes in one commit.
func (k *kept) take(c gitstore.Commit) {
	item, name, due := trailer(c, "Bagpipe-Item"), trailer(c, "Bagpipe-Schedule"), trailer(c, "Bagpipe-Due")
	if trailer(c, "Bagpipe-Disposal") != "" { // no copy is left that could be mended
		delete(k.Events, damaged+item)
		delete(k.Told, damaged+item)
		return
	}
	if outcome := trailer(c, "Bagpipe-Fixity"); outcome != "" {
		if outcome != layout.FixityFailed {
			delete(k.Events, damaged+item)
			if strings.Contains(c.Body, ": mended from ") {
				k.Events[once+"healed "+item+" "+c.Hash.String()] = News{Kind: notice.Fixity, Item: layout.ItemID(item), Message: said(c), Since: c.When}
			}
			return
		}
		k.Events[damaged+item] = News{Kind: notice.Fixity, Item: layout.ItemID(item), Message: said(c), Since: c.When}
		return
	}
	key := "schedule " + name + " "
	words := strings.Fields(c.Subject) // schedule: OUTCOME NAME
	if len(words) < 3 {
		return
	}
	switch words[1] {
	case schedule.Failed, schedule.TimedOut, schedule.Lost, schedule.Missed:
		k.Events[key+due] = News{Kind: notice.Schedules, Schedule: name, Message: words[1] + ", due " + due, Since: c.When}
	case schedule.Completed:
		maps.DeleteFunc(k.Events, func(of string, _ News) bool { return strings.HasPrefix(of, key) })
	}
}

func trailer(c gitstore.Commit, key string) string {
	for _, t := range c.Trailers {
		if t.Key == key {
			return t.Value
		}
	}
	return ""
}

// Lines are a digest in words, for mail and feeds.
func (d *Digest) Lines() []string {
	lines := []string{d.Workspace + ": " + d.Text}
	for _, part := range []struct {
		title string
		news  []News
		more  int
	}{{"New", d.News, d.total() - len(d.News)}, {"Mended", d.Mended, d.Counts[notice.Mended] - len(d.Mended)}} {
		if len(part.news) == 0 {
			continue
		}
		lines = append(lines, "", part.title+":")
		for _, n := range part.news {
			lines = append(lines, "  "+n.line())
		}
		if part.more > 0 {
			lines = append(lines, fmt.Sprintf("  and %d more", part.more))
		}
	}
	return lines
}

func (d *Digest) total() (n int) {
	for kind, of := range d.Counts {
		if kind != notice.Mended {
			n += of
		}
	}
	return n
}

func (n News) line() string {
	var parts []string
	for _, part := range []string{n.Kind, n.Schedule, n.Item.Short(), n.Label, n.Step, n.Message} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	text := strings.Join(parts, "  ")
	if !n.Since.IsZero() {
		text += " (since " + n.Since.UTC().Format(time.DateTime) + " UTC)"
	}
	return ledger.OneLine(ledger.Printable(text), 500)
}
