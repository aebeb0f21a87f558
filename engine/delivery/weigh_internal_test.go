package delivery

import (
	"encoding/json"
	"fmt"
	"syscall"
	"testing"
	"time"

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
	book := bookOf(&settings.Snapshot{Settings: &settings.Settings{Targets: targets}, Rules: []*recognise.File{f}})
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
