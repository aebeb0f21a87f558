package steps

import (
	"bytes"
	"compress/zlib"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bagpipe/steps/describe"
)

// bombPDF is a PDF whose table of objects, when it is inflated, is larger than memory may be.
func bombPDF(t *testing.T, size int) string {
	t.Helper()
	var table bytes.Buffer
	w, err := zlib.NewWriterLevel(&table, zlib.BestSpeed)
	must(t, err)
	zeros := make([]byte, 1<<20)
	for range size >> 20 {
		_, err := w.Write(zeros)
		must(t, err)
	}
	must(t, w.Close())
	head := "%PDF-1.5\n1 0 obj\n<</Type/Catalog/Pages 2 0 R>>\nendobj\n2 0 obj\n<</Type/Pages/Kids[]/Count 0>>\nendobj\n"
	return head + fmt.Sprintf("3 0 obj\n<</Type/XRef/Size %d/W[1 2 1]/Root 1 0 R/Filter/FlateDecode/Length %d>>\nstream\n%s\nendstream\nendobj\nstartxref\n%d\n%%%%EOF\n",
		size/4, table.Len(), table.String(), len(head))
}

// Files made to exhaust what reads them are refused, each with its name and why; the others are
// described, and the step completes.
func TestBombs(t *testing.T) {
	tiff := func(next string, width, height string) string {
		return "II*\x00\x08\x00\x00\x00\x02\x00" + "\x00\x01\x04\x00\x01\x00\x00\x00" + width + "\x01\x01\x04\x00\x01\x00\x00\x00" + height + next
	}
	it := newItem(t, "drop", map[string]string{
		"bomb.pdf":   bombPDF(t, 1<<30),
		"loop.tif":   tiff("\x08\x00\x00\x00", "\x0a\x00\x00\x00", "\x0a\x00\x00\x00"),
		"huge.tif":   tiff("\x00\x00\x00\x00", "\x00\x00\x00\x80", "\x00\x00\x00\x80"),
		"laughs.xml": `<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]><x>&b;</x>`,
		"lies.shp":   "\x00\x00\x27\x0a" + strings.Repeat("\x00", 96) + "\x00\x00\x00\x01\x7f\xff\xff\xff\x05\x00\x00\x00",
		"good.tif":   tiff("\x00\x00\x00\x00", "\x0a\x00\x00\x00", "\x0a\x00\x00\x00"),
	})
	c := it.call()
	c.Limits.Memory = 256 << 20
	res, err := Builtins()["describe"].Robot.Run(t.Context(), c)
	must(t, err)
	data, err := os.ReadFile(filepath.Join(c.Scratch, string(res.Outputs[0].From), "describe.json"))
	must(t, err)
	var report struct{ Files map[string]describe.Facts }
	must(t, json.Unmarshal(data, &report))
	for name, says := range map[string]string{"bomb.pdf": "memory", "loop.tif": "at byte 8: the directories loop", "huge.tif": "at byte 8: a picture of 2147483648",
		"laughs.xml": "at byte 21: a declaration", "lies.shp": "at byte 100: a record of 4294967294 bytes", "good.tif": ""} {
		if f := report.Files[name]; (says == "") != (f.Error == "") || !strings.Contains(f.Error, says) {
			t.Errorf("%s: %q, want %q", name, f.Error, says)
		}
		if !strings.Contains(it.log.String(), "warning: "+name) && says != "" {
			t.Errorf("the log does not name %s", name)
		}
	}
	if report.Files["good.tif"].Entity["width"] != 10.0 {
		t.Errorf("good.tif: %+v", report.Files["good.tif"])
	}
}

// Of an object of more files than are looked into the side-cars are read nevertheless, those nearest the top first.
func TestSideCarOfMany(t *testing.T) {
	dropped := map[string]string{"about.xml": "<record><notary>A. Notary</notary></record>"}
	for i := range manyDescribed + 1 {
		dropped[fmt.Sprintf("scans/%03d.mp3", i)] = strings.Repeat("x", 200)
		dropped[fmt.Sprintf("scans/%03d.xml", i)] = "<scan>" + strings.Repeat("x", 100) + "</scan>"
	}
	it := newItem(t, "drop", dropped)
	c := it.call()
	c.With = map[string]any{"business": map[string]any{"notary": "//notary"}}
	res, err := Builtins()["describe"].Robot.Run(t.Context(), c)
	must(t, err)
	if business, _ := res.Metadata["business"].(map[string]any); business["notary"] != "A. Notary" {
		t.Errorf("%v", business)
	}
	if !strings.Contains(res.Message, "500 files described, 3 left out, 500 not read") {
		t.Errorf("says %q", res.Message)
	}
}
