package notices_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bagpipe/engine/disposal"
	"bagpipe/engine/fixity"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/intake"
	"bagpipe/engine/ledger"
	"bagpipe/engine/notices"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// told gives what a digest tells after an hour; nil: there is none.
func (b *bench) told(h *hook) *notices.Digest {
	b.Helper()
	before := len(h.got)
	b.clock.Move(time.Hour)
	b.must(b.e.Notices.Tell(b.Context(), false))
	if len(h.got) == before {
		return nil
	}
	return &h.got[len(h.got)-1]
}

// wants checks that a digest tells one thing of a kind, and no other.
func (b *bench) wants(d *notices.Digest, kind, text string) {
	b.Helper()
	if d == nil {
		b.Errorf("nothing is told of %s", kind)
		return
	}
	if len(d.Counts) != 1 || d.Counts[kind] != 1 || !strings.Contains(strings.Join(d.Lines(), "\n"), text) {
		b.Errorf("of %s it tells %v: %s", kind, d.Counts, strings.Join(d.Lines(), "\n"))
	}
}

// Steps that wait for a person, schedules that fail, copies that are damaged, items to dispose of and
// searches that find more are told once, and that schedules and copies are well again.
func TestEachKindIsTold(t *testing.T) {
	b, h := hooked(t, "")
	ctx, root := t.Context(), b.e.Root()
	b.put(root, "workflows/w.yaml", "schema: 1\nname: w\nsteps:\n  - name: register\n  - {name: look, manual: true}\n")
	b.put(root, "schedules/s.yaml", "schema: 1\nname: s\ntrigger: {cron: '0 0 1 1 *'}\ndo: {command: [sh, -c, 'test -e well']}\n")
	b.put(root, "searches/maps.yaml", "schema: 1\nname: maps\ntext: map\n")
	b.must(b.e.Settings.Sync(ctx))
	b.must(b.e.Index.Load(ctx))
	if d := b.told(h); d != nil {
		t.Fatalf("nothing has happened, and it tells %+v", d)
	}
	add := func(name string) (id layout.ItemID) {
		dir := t.TempDir()
		b.put(dir, name, "the bytes of "+name)
		b.must(b.e.Intake.AddAll(ctx, []string{filepath.Join(dir, name)}, intake.AddOptions{}, func(a intake.Admitted, err error) { b.must(err); id = a.Item }))
		return id
	}
	item := add("sheet.txt")
	b.wants(b.told(h), "people", "w/look")
	_, err := b.e.Act.Decide(ctx, ledger.StepRef{Item: item, Workflow: "w.1", Step: "look"}, state.Completed, "")
	b.must(err)
	if d := b.told(h); d != nil {
		t.Errorf("what a person did is told: %+v", d)
	}
	fire := func() {
		_, _, err := b.e.Schedule.Fire(ctx, b.e.Ledger.ByPerson(), "s", nil)
		b.must(err)
	}
	fire()
	b.wants(b.told(h), "schedules", "failed, due")
	b.put(root, "well", "")
	fire()
	b.wants(b.told(h), "mended", "Mended:")
	source := filepath.Join(root, layout.ItemDir(item), "source", "sheet.txt")
	was, err := os.ReadFile(source)
	b.must(err)
	damaged := append([]byte("X"), was[1:]...)
	b.must(os.Chmod(source, 0o644))
	check := func(data []byte) {
		b.must(os.WriteFile(source, data, 0o644))
		_, err := b.e.Fixity.Run(ctx, fixity.Which{}, func(fixity.Result) {})
		b.must(err)
	}
	check(damaged)
	b.wants(b.told(h), "fixity", "source")
	check(was)
	b.wants(b.told(h), "mended", "fixity")
	_, err = b.e.Disposal.Propose(ctx, disposal.Draft{Items: []layout.ItemID{item}, Reason: "its time is over"})
	b.must(err)
	b.wants(b.told(h), "disposal", "to be approved: the disposal of 1 item: its time is over")
	other := add("map-7.txt")
	if d := b.told(h); d == nil || d.Counts["searches"] != 1 || d.Counts["people"] != 1 || !strings.Contains(strings.Join(d.Lines(), "\n"), "found by maps") {
		t.Errorf("of item %s: %+v", other, d)
	}
	if d := b.told(h); d != nil {
		t.Errorf("told again: %+v", d)
	}
}

// A copy found damaged, and a schedule that failed, before the first look of notify: are told with it, and that
// they are well again.
func TestWhatStoodBeforeTheFirstLookIsTold(t *testing.T) {
	b, h := hooked(t, ", of: [fixity, schedules, mended]")
	ctx, root := t.Context(), b.e.Root()
	b.put(root, "schedules/s.yaml", "schema: 1\nname: s\ntrigger: {cron: '0 0 1 1 *'}\ndo: {command: [sh, -c, 'test -e well']}\n")
	b.must(b.e.Settings.Sync(ctx))
	b.must(b.e.Index.Load(ctx))
	fire := func() {
		_, _, err := b.e.Schedule.Fire(ctx, b.e.Ledger.ByPerson(), "s", nil)
		b.must(err)
	}
	fire()
	dir := t.TempDir()
	b.put(dir, "sheet.txt", "the bytes")
	var item layout.ItemID
	b.must(b.e.Intake.AddAll(ctx, []string{filepath.Join(dir, "sheet.txt")}, intake.AddOptions{}, func(a intake.Admitted, err error) { b.must(err); item = a.Item }))
	source := filepath.Join(root, layout.ItemDir(item), "source", "sheet.txt")
	b.must(os.Chmod(source, 0o644))
	check := func(data string) {
		b.must(os.WriteFile(source, []byte(data), 0o644))
		_, err := b.e.Fixity.Run(ctx, fixity.Which{}, func(fixity.Result) {})
		b.must(err)
	}
	check("the bites")
	if d := b.told(h); d == nil || len(d.Counts) != 2 || d.Counts["fixity"] != 1 || d.Counts["schedules"] != 1 || !strings.Contains(strings.Join(d.Lines(), "\n"), "sheet.txt") {
		t.Fatalf("it tells %+v", d)
	}
	if d := b.told(h); d != nil {
		t.Errorf("told again: %+v", d)
	}
	check("the bytes")
	b.put(root, "well", "")
	fire()
	if d := b.told(h); d == nil || len(d.Counts) != 1 || d.Counts["mended"] != 2 {
		t.Errorf("it tells %+v", d)
	}
}

// Of a schedule that fails on, the last twenty firings are remembered; of one that is gone, none, and it is not told as
// mended. Nor is a copy of an item that was disposed of.
func TestWhatIsGoneIsForgotten(t *testing.T) {
	b, h := hooked(t, ", of: [schedules, fixity, mended]")
	ctx, root := t.Context(), b.e.Root()
	for _, name := range []string{"s", "other"} {
		b.put(root, "schedules/"+name+".yaml", "schema: 1\nname: "+name+"\ntrigger: {cron: '0 0 1 1 *'}\ndo: {command: ['false']}\n")
	}
	b.must(b.e.Settings.Sync(ctx))
	b.must(b.e.Index.Load(ctx))
	b.told(h) // from here on
	fail := func(name string, times int) {
		for range times {
			_, _, err := b.e.Schedule.Fire(ctx, b.e.Ledger.ByPerson(), name, nil)
			b.must(err)
			b.clock.Move(time.Minute)
		}
	}
	kept := func() int {
		data, err := os.ReadFile(filepath.Join(root, ".bagpipe/notices/ops.json"))
		b.must(err)
		return strings.Count(string(data), `"schedules"`)
	}
	fail("s", 1)
	if d := b.told(h); d == nil || d.Text != "1 firing not completed" {
		t.Errorf("%+v", d)
	}
	fail("other", 30)
	if d := b.told(h); d == nil || d.Text != "30 firings not completed" {
		t.Errorf("%+v", d)
	}
	fail("s", 1)
	b.told(h)
	const each = 2 // it stands, and it was told
	if got := kept(); got != (20+2)*each {
		t.Errorf("%d are remembered", got)
	}
	b.must(os.Remove(filepath.Join(root, "schedules/other.yaml")))
	b.must(b.e.Settings.Sync(ctx))
	if d := b.told(h); d != nil {
		t.Errorf("what is gone is told as %v", d.Counts)
	}
	if got := kept(); got != 2*each {
		t.Errorf("%d are remembered of a schedule that is gone", got)
	}
	says := func(subject string, trailers ...ledger.Trailer) {
		_, err := b.e.Ledger.Store.Commit(ctx, func(gitstore.Reader) (*gitstore.Change, error) {
			return &gitstore.Change{Files: map[string][]byte{"notes/" + subject: []byte(subject)}, Author: b.e.Ledger.ByPerson().Author, Message: ledger.Message(subject, "", trailers)}, nil
		})
		b.must(err)
	}
	says("damaged", ledger.Trailer{"Bagpipe-Item", "000000000000000"}, ledger.Trailer{"Bagpipe-Fixity", layout.FixityFailed})
	b.wants(b.told(h), "fixity", "000000000000000"[:7])
	says("gone", ledger.Trailer{"Bagpipe-Item", "000000000000000"}, ledger.Trailer{"Bagpipe-Disposal", "key"})
	if d := b.told(h); d != nil {
		t.Errorf("an item that was disposed of is told as %v", d.Counts)
	}
}
