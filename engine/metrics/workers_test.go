package metrics

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"bagpipe/engine/ledger"
	"bagpipe/engine/remote/wire"
	"bagpipe/layout/disk"
)

// Workers are told of by class and by worker, under names that the documentation has.
func TestFiguresOfWorkersByClassAndWorker(t *testing.T) {
	m := &Metrics{ledger: &ledger.Ledger{Options: ledger.Options{Root: t.TempDir()}}}
	none := &writer{}
	if m.workers(none); none.Len() > 0 {
		t.Errorf("no engine serves workers: %s", none)
	}
	s := wire.Status{Offers: map[string]int{"ocr with gpu=a100": 12}, Classes: map[string]wire.Took{"ocr with gpu=a100": {Attempts: 3, Wait: 1.5, Fetch: 2, Run: 30, Send: 0.25}}, Refused: 5,
		Workers: []wire.WorkerStatus{{Name: "w1", State: "ready", Slots: 4, Running: make([]wire.RunningStatus, 2), Ends: wire.Ends{Refused: 4}, Took: wire.Took{Attempts: 2, Run: 20}}, {Name: "w2", State: "silent"}}}
	data, err := json.Marshal(s)
	file := m.ledger.Path(wire.StatusFile)
	if err == nil {
		err = disk.MkdirAll(filepath.Dir(file), 0o755)
	}
	if err == nil {
		err = os.WriteFile(file, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	w := &writer{}
	m.workers(w)
	for _, want := range []string{`offers{class="ocr with gpu=a100"} 12`, `class_attempts_total{class="ocr with gpu=a100"} 3`, `class_wait_seconds_total{class="ocr with gpu=a100"} 1.5`,
		`class_fetch_seconds_total{class="ocr with gpu=a100"} 2`, `class_run_seconds_total{class="ocr with gpu=a100"} 30`, `class_send_seconds_total{class="ocr with gpu=a100"} 0.25`,
		`worker_attempts_total{worker="w1"} 2`, `worker_run_seconds_total{worker="w1"} 20`, `worker_slots{worker="w1",state="ready"} 4`, `worker_running{worker="w1"} 2`, `worker_running{worker="w2"} 0`,
		`refused_messages_total 5`, `worker_refused_messages_total{worker="w1"} 4`} {
		if !strings.Contains(w.String(), "bagpipe_"+want+"\n") {
			t.Errorf("no %s in\n%s", want, w)
		}
	}
	docs, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range regexp.MustCompile(`(?m)^# TYPE (\S+)`).FindAllStringSubmatch(w.String(), -1) {
		if !strings.Contains(string(docs), "`"+name[1]+"`") {
			t.Errorf("docs/operations.md does not tell of %s", name[1])
		}
	}
}
