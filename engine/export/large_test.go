package export

import (
	"bufio"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// weigher is a writer that finds how much memory is in use while it is written to.
type weigher struct{ bytes, weighed, most int64 }

const weighEvery = 4 << 20

func (w *weigher) Write(b []byte) (int, error) {
	if w.bytes += int64(len(b)); w.bytes-w.weighed > weighEvery {
		w.weighed = w.bytes
		w.most = max(w.most, inUse())
	}
	return len(b), nil
}

func inUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// largeRecord is an item of many files.
func largeRecord(files int) *record {
	r := &record{Record: &ledger.Record{Execution: &state.Execution{}, Manifest: layout.Manifest{Item: "3fa9c0d2e1b7a49", Label: "large"}},
		inventory: &layout.Inventory{Files: make(map[string]layout.InventoryFile, files)}}
	for i := range files {
		r.inventory.Files[fmt.Sprintf("d%03d/file-%06d.txt", i%1000, i)] = layout.InventoryFile{Size: int64(i), SHA256: strings.Repeat("a", 64), SHA512: strings.Repeat("b", 128), Type: "text/plain"}
	}
	return r
}

// What is written of an item of many files is not held in memory: a part of its length is enough.
func TestLargeItemsAreNotHeld(t *testing.T) {
	r := largeRecord(20_000)
	for name, write := range map[string]func(io.Writer) error{
		"premis": func(w io.Writer) error { return writeXML(w, r, false) },
		"mets":   func(w io.Writer) error { return writeXML(w, r, true) },
		"crate":  r.writeCrate,
	} {
		var w weigher
		before := inUse()
		if err := write(&w); err != nil {
			t.Fatal(err)
		}
		if held := w.most - before; w.weighed == 0 || held > w.bytes/2 || held > 8<<20 {
			t.Errorf("%s: %d KiB are held, of %d", name, held>>10, w.bytes>>10)
		}
	}
	runtime.KeepAlive(r)
}

func writeXML(w io.Writer, r *record, mets bool) error {
	out := bufio.NewWriter(w)
	doc := &xmlDocument{xmlWriter: xmlWriter{out: out}, mets: mets}
	if err := doc.item(r); err != nil {
		return err
	}
	return out.Flush()
}
