package steps

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bagpipe/bags"
	"bagpipe/bags/files"
	"bagpipe/bags/finding"
	"bagpipe/layout"
)

func TestValidateSkipsWhatIsNoBag(t *testing.T) {
	for _, files := range []map[string]string{{"a": "A"}, {"": "a loose file"}, {"d/e/bagit.txt": "too deep"}, {"data/a": "A"}, {"manifest-md5.txt": ""}} {
		it := newItem(t, "drop", files)
		r, err := it.run("validate")
		if err != nil || r.Status != Skipped || r.Message != "not applicable: no bag (no bagit.txt)" {
			t.Errorf("%+v, %v", r, err)
		}
	}
}

// Its checksums would be compared by nobody.
func TestValidateRefusesABagWithoutItsDeclaration(t *testing.T) {
	bag := aBag(t)
	delete(bag, "bagit.txt")
	for _, files := range []map[string]string{bag, within("bag/", bag)} {
		it := newItem(t, "drop", files)
		it.pass("unpack")
		_, err := it.run("validate")
		wantFailure(t, err, Content, "no bagit.txt", "RFC 8493, 2.1.1")
	}
}

func TestValidateNamesTheFirstErrorAndCountsTheRest(t *testing.T) {
	bag := aBag(t)
	bag["data/a.txt"] = "ONE"
	delete(bag, "data/d/ü.txt")
	it := newItem(t, "drop", within("bag/", bag))
	it.pass("unpack")
	c := it.call()
	r, err := Builtins()["validate"].Robot.Run(t.Context(), c)
	wantFailure(t, err, Content, "data/a.txt", string(finding.Mismatch), "RFC 8493", "3 further errors")
	if len(r.Outputs) != 1 || r.Outputs[0].To != "derived/validate" {
		t.Fatalf("outputs %v", r.Outputs)
	}
	data, err := os.ReadFile(filepath.Join(c.Scratch, string(r.Outputs[0].From), "report.json"))
	must(t, err)
	var report bags.Report
	must(t, json.Unmarshal(data, &report))
	if report.Valid || report.Errors != 4 || report.Bag != "bag" {
		t.Errorf("%+v", report)
	}
	if !strings.Contains(it.log.String(), "data/a.txt: mismatch") {
		t.Errorf("log %q", it.log.String())
	}
}

func TestInventory(t *testing.T) {
	it := newItem(t, "drop", map[string]string{"a.txt": "one", "caf\xe9 100%": "%PDF-1.4 ", "zero": ""})
	it.pass("unpack", "inventory")
	v, err := layout.DecodeInventory(it.inventory)
	must(t, err)
	if len(v.Files) != 3 || v.Item != testItem {
		t.Fatalf("%+v", v)
	}
	a := v.Files["a.txt"]
	if a.Size != 3 || a.SHA256 != "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed" || len(a.SHA512) != 128 ||
		a.Type != "text/plain; charset=utf-8" {
		t.Errorf("a.txt: %+v", a)
	}
	if got := v.Files["caf%E9 100%25"].Type; got != "application/pdf" {
		t.Errorf("type %q", got)
	}
}

func TestInventoryWantsFiles(t *testing.T) {
	it := newItem(t, "drop", map[string]string{})
	_, err := it.run("inventory")
	wantFailure(t, err, Content, "no files")

	it = newItem(t, "drop", map[string]string{"a": "A"})
	must(t, os.Symlink("a", filepath.Join(it.dir, "source/drop/l")))
	_, err = it.run("inventory")
	wantFailure(t, err, Content, string(files.RuleSymlink))
}

// A second check of a name would stand in the place of the first, which failed.
func TestChecksOfOneName(t *testing.T) {
	one := `{"id": "lines", "level": "data.records", "result": "%s"}`
	for said, want := range map[string]string{"lines": `checks[1].id: "lines" is that of checks[0], too`, "words": ""} {
		text := fmt.Sprintf(`{"checks": [`+one+`, `+strings.Replace(one, "lines", said, 1)+`]}`, "fail", "pass")
		res, err := ResultOf(&Call{}, []byte(text))
		if want == "" && (err != nil || len(res.Checks) != 2) || want != "" && (err == nil || KindOf(err) != System || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %+v, %v", text, res, err)
		}
	}
}
