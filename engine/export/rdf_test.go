package export

import (
	"bufio"
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

var update = flag.Bool("update", false, "write the golden files")

// seedPlan and seedExecution are the seed's example: a chain of three engines, of which the second,
// optional, was skipped, the third failed, and so did the chain.
const (
	seedPlan = `schema: 1
name: default
steps:
  - name: metaxa
  - {name: langid, requires: [metaxa], optional: true, command: [langid]}
  - {name: ner, requires: [langid], command: [ner, --model, en]}
  - {name: dbpedia-linking, requires: [ner], command: [linking]}
`
	seedExecution = `{"schema": 1, "item": "3fa9c0d2e1b7a49", "intents": {}, "milestones": {}, "workflows": {"default.1": {
"definition": {"name": "default", "digest": "sha256:00"}, "created": "2012-01-30T10:00:00Z", "status": "failed", "steps": {
"metaxa": {"status": "completed", "attempts": {"1-5c1e9a70": {"state": "completed", "claimed": "2012-01-30T10:00:00Z", "started": "2012-01-30T10:00:00Z", "ended": "2012-01-30T10:00:01Z"}}},
"langid": {"status": "skipped", "attempts": {"1-5c1e9a70": {"state": "skipped", "claimed": "2012-01-30T10:00:01Z", "started": "2012-01-30T10:00:01Z", "ended": "2012-01-30T10:00:02Z", "message": "no text"}}},
"ner": {"status": "failed", "attempts": {"1-5c1e9a70": {"state": "failed", "kind": "system", "claimed": "2012-01-30T10:00:02Z", "started": "2012-01-30T10:00:02Z", "ended": "2012-01-30T10:00:03Z", "message": "the model \"en\" is not there\n"}}}
}}}}`
)

// The seed's example as Turtle and JSON-LD, to the letter.
func TestGoldenRDF(t *testing.T) {
	plan, err := state.ParseDefinition("default.yaml", []byte(seedPlan), nil)
	if err != nil {
		t.Fatal(err)
	}
	x, err := state.Decode([]byte(seedExecution))
	if err != nil {
		t.Fatal(err)
	}
	x.Compute("default.1", plan)
	r := &record{Record: &ledger.Record{Execution: x, Manifest: layout.Manifest{Item: "3fa9c0d2e1b7a49"}}, plans: map[string]*state.Definition{"sha256:00": plan}, isDefault: "default"}
	for name, make := range map[string]func(*bufio.Writer) document{
		"seed.ttl":    func(w *bufio.Writer) document { return &turtle{out: w} },
		"seed.jsonld": func(w *bufio.Writer) document { return &jsonld{out: w} },
	} {
		var out bytes.Buffer
		w := bufio.NewWriter(&out)
		doc := make(w)
		for _, err := range []error{doc.item(r), doc.end(), w.Flush()} {
			if err != nil {
				t.Fatal(err)
			}
		}
		golden := filepath.Join("testdata", name)
		if *update {
			if err := os.MkdirAll("testdata", 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(golden, out.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil || !bytes.Equal(out.Bytes(), want) {
			t.Errorf("%s: %v\n%s", name, err, out.Bytes())
		}
	}
}

// BenchmarkTurtle writes items one after the other.
func BenchmarkTurtle(b *testing.B) {
	plan, err := state.ParseDefinition("default.yaml", []byte(seedPlan), nil)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		x, err := state.Decode([]byte(seedExecution))
		if err != nil {
			b.Fatal(err)
		}
		x.Compute("default.1", plan)
		r := &record{Record: &ledger.Record{Execution: x, Manifest: layout.Manifest{Item: "3fa9c0d2e1b7a49"}}, plans: map[string]*state.Definition{"sha256:00": plan}}
		var out bytes.Buffer
		w := bufio.NewWriter(&out)
		doc := &turtle{out: w}
		if err := doc.item(r); err != nil {
			b.Fatal(err)
		}
	}
}
