package delivery

import (
	"encoding/json"
	"fmt"
	"syscall"
	"testing"
	"time"

	"bagpipe/engine/ledger"
	"bagpipe/engine/recognise"
	"bagpipe/engine/settings"
	"bagpipe/layout"
	"bagpipe/steps/target"
)

// tenRules are as an archive has them: some by type, one by what an item is worth, one that a
// person is asked about.
const tenRules = `schema: 1
name: portal
delivery:
  - {to: portal, for: type = orthophoto and quality.result != fail, approve: quality.result = warn}
  - {to: portal, for: type = map and metadata.year > 1900}
  - {to: reading-room, for: collection = letters, approve: always}
  - {to: reading-room, for: type = book}
  - {to: mirror, for: metadata.tags = flood or metadata.tags = coast}
  - {to: mirror, for: metadata.space exists}
  - {to: tape, for: type = audio}
  - {to: tape, for: type = video}
  - {to: press, for: metadata.title ~ '^Flood'}
  - {to: press, for: version > 1}
`

// BenchmarkWeigh tells how many items a second are held against ten delivery rules of five
// targets, beside what decoding the same two records takes.
func BenchmarkWeigh(b *testing.B) {
	f, err := settings.ParseRules("rules/portal.yaml", []byte(tenRules))
	if err != nil {
		b.Fatal(err)
	}
	targets := map[string]target.Config{}
	for _, d := range f.Delivery {
		targets[d.To] = target.Config{}
	}
	book := bookOf("", &settings.Snapshot{Settings: &settings.Settings{Targets: targets}, Rules: []*recognise.File{f}})
	now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	var objects []object
	for n := range 1000 {
		m := layout.Manifest{Item: layout.ItemID(fmt.Sprintf("%032x", n)), Version: 1, Collection: "maps", Label: fmt.Sprint("sheet ", n), Lane: "normal", Created: now,
			Source:   layout.Source{Name: fmt.Sprintf("sheet-%d.tif", n)},
			Metadata: map[string]any{"title": fmt.Sprint("Flood plain ", n), "year": 1850 + n%150, "tags": []any{"flood", "place:Beijing"}}}
		m.Type = []string{"orthophoto", "map", "letter"}[n%3]
		manifest, err := m.Encode(nil)
		if err != nil {
			b.Fatal(err)
		}
		objects = append(objects, object{id: m.Item, manifest: manifest, execution: []byte(`{"schema": 1, "milestones": {"registered": "2026-11-01T00:00:00Z"}, "workflows": {}}`)})
	}
	weighed, before := 0, processorTime(b)
	for b.Loop() {
		for _, o := range objects {
			if book.weigh(&o, now, "rules") {
				weighed++
			}
		}
	}
	if weighed == 0 {
		b.Fatal("no rule wants anything")
	}
	spent, busy := b.Elapsed(), processorTime(b)-before
	begin := time.Now()
	for range b.N {
		for _, o := range objects {
			var manifest, execution map[string]any
			if json.Unmarshal(o.manifest, &manifest) != nil || json.Unmarshal(o.execution, &execution) != nil {
				b.Fatal("a record that is none")
			}
		}
	}
	b.ReportMetric(float64(b.N*len(objects))/spent.Seconds(), "items/s")
	b.ReportMetric(float64(b.N*len(objects))/busy.Seconds(), "items/processor-s")
	b.ReportMetric(time.Since(begin).Seconds()/spent.Seconds(), "×decoding")
}

// processorTime is what this process has taken of the processors.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// What a target was sent is sent again once the object is described otherwise, not once its place has another stamp. What a build
// before sent, whose digest was of the whole manifest, stands as long as the manifest does.
func TestSentAgainOnceWhatDescribesItChanges(t *testing.T) {
	f, err := settings.ParseRules("rules/portal.yaml", []byte("schema: 1\nname: portal\ndelivery:\n  - {to: portal, for: version > 0}\n"))
	if err != nil {
		t.Fatal(err)
	}
	m := layout.Manifest{Item: "d0c4628b84ea997", Version: 1, Collection: "maps", Label: "sheet", Lane: "normal", Metadata: map[string]any{"year": json.Number("1950")},
		Source: layout.Source{Name: "sheet.tif", Rule: "maps/sheet", Place: &layout.Place{Catalog: "c", Path: "sheet.tif", Stamp: "sha256:1"}}, Inventory: &layout.InventorySummary{Digest: "sha256:2"}}
	m.Recognition = &layout.Recognition{Verdict: "yes", Rule: "maps/sheet"}
	encoded := func(change func(*layout.Manifest)) []byte {
		t.Helper()
		n, source, place := m, m.Source, *m.Source.Place
		n.Source = source
		n.Source.Place = &place
		change(&n)
		data, err := n.Encode(nil)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	first := encoded(func(*layout.Manifest) {})
	same := encoded(func(n *layout.Manifest) {
		n.Lane, n.Source.Rule, n.Source.Taken, n.Source.Place.Stamp, n.Recognition = "express", "maps/other", time.Unix(1, 0), "sha256:3", nil
	})
	labelled := encoded(func(n *layout.Manifest) { n.Label = "sheet 2" })
	filed := encoded(func(n *layout.Manifest) { n.Inventory = &layout.InventorySummary{Digest: "sha256:4"} })
	for _, format := range []string{target.FormatFiles, target.FormatBag, target.FormatSTAC, target.FormatText} {
		described := format == target.FormatSTAC || format == target.FormatText
		book := bookOf("", &settings.Snapshot{Settings: &settings.Settings{Targets: map[string]target.Config{"portal": {Outlet: target.Outlet{Format: format}}}}, Rules: []*recognise.File{f}})
		for _, one := range []struct {
			what   string
			now    []byte
			before bool // a build before sent it
			again  bool
		}{
			{"nothing", first, false, false}, {"the stamp", same, false, false}, {"the label", labelled, false, described}, {"the inventory", filed, false, true},
			{"nothing since the build before", first, true, false}, {"the label since the build before", labelled, true, format != target.FormatFiles},
		} {
			o := &object{id: m.Item, manifest: first, execution: []byte(`{"schema": 1, "workflows": {}}`)}
			book.weigh(o, time.Unix(1, 0), "rules")
			d := o.delivery.Targets["portal"]
			if one.before && format != target.FormatFiles {
				d.Digest = ledger.DigestOf(first)
			}
			d.State, d.Sent = layout.DeliveryDelivered, &layout.DeliverySent{Version: 1, Digest: d.Digest}
			o.manifest = one.now
			book.weigh(o, time.Unix(2, 0), "rules")
			if again := o.delivery.Targets["portal"].State == layout.DeliveryReady; again != one.again {
				t.Errorf("%s: %s changed: it is sent again: %v", format, one.what, again)
			}
		}
	}
}
