package sidecar

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bagpipe/engine/inbox"
	"bagpipe/engine/settings"

	"golang.org/x/sys/unix"
)

func sidecarDrop(t *testing.T, files map[string]string) inbox.Taken {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "letters")
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return inbox.Taken{Name: "letters", Path: dir, Kind: inbox.Folder}
}

func withMetadata(m settings.MetadataSettings) settings.DropSettings {
	return settings.DropSettings{Metadata: &m}
}

// What side-cars say, what wins, and what the settings make of it.
func TestMetadataOfSidecars(t *testing.T) {
	drop := sidecarDrop(t, map[string]string{
		"a.tif": "x", "sub/b.tif": "x",
		"metadata.json": `{"title": "Letters", "year": 1871, "creator": {"name": "Ada"}, "Barcode": "B 17"}`,
		"metadata.csv":  "\ufefffile;page;note\na.tif;1;\nsub/b.tif;2;torn\n",
		"bag-info.txt":  "Source-Organization: Archive\nContact-Name: Ada\nContact-Name: Bob\ntitle: overruled\n",
	})
	shared := filepath.Join(t.TempDir(), "metadata.csv")
	if err := os.WriteFile(shared, []byte("drop,shelf,title\nother,9,no\nletters,\"17, left\",no\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	drop.Shared = shared
	fields, ids, err := ReadMetadata(context.Background(), &settings.MetadataSettings{Map: map[string]string{"title": "dc:title", "Contact-Name": ""},
		Identifiers: map[string]string{"barcode": "Barcode", "doi": "DOI"}}, CarReader{Shared: &SharedTable{}}, drop)
	if err != nil {
		t.Fatal(err)
	}
	want := "map[Barcode:B 17 Source-Organization:Archive creator:map[name:Ada] dc:title:Letters " +
		"files:map[a.tif:map[page:1] sub/b.tif:map[note:torn page:2]] shelf:17, left year:1871]"
	if got := fmt.Sprint(fields); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if len(ids) != 1 || ids["barcode"] != "B 17" {
		t.Errorf("identifiers %v", ids)
	}
	fields, _, err = ReadMetadata(context.Background(), &settings.MetadataSettings{Only: true, Map: map[string]string{"year": "date"}}, CarReader{Shared: &SharedTable{}}, drop)
	if got := fmt.Sprint(fields); err != nil || got != "map[date:1871 files:map[a.tif:map[page:1] sub/b.tif:map[note:torn page:2]]]" {
		t.Errorf("%s, %v", got, err)
	}
	if fields, _, err := ReadMetadata(context.Background(), nil, CarReader{Shared: &SharedTable{}}, drop); fields != nil || err != nil {
		t.Errorf("without metadata: nothing is read, got %v, %v", fields, err)
	}
}

// An identifier may be written as a number; what is no single value is refused, and not
// passed over.
func TestIdentifiersOfSidecars(t *testing.T) {
	set := withMetadata(settings.MetadataSettings{Identifiers: map[string]string{"barcode": "Barcode"}})
	for text, want := range map[string]string{
		`{"Barcode": 35112}`: "35112", `{"Barcode": "B17"}`: "B17", `{"Barcode": null}`: "", `{"Barcode": ""}`: "", `{}`: "",
	} {
		_, ids, err := ReadMetadata(context.Background(), set.Metadata, CarReader{Shared: &SharedTable{}}, sidecarDrop(t, map[string]string{"metadata.json": text}))
		if err != nil || ids["barcode"] != want {
			t.Errorf("%s: %v, %v", text, ids, err)
		}
	}
	for _, text := range []string{`{"Barcode": ["a", "b"]}`, `{"Barcode": {"a": 1}}`, `{"Barcode": true}`} {
		_, _, err := ReadMetadata(context.Background(), set.Metadata, CarReader{Shared: &SharedTable{}}, sidecarDrop(t, map[string]string{"metadata.json": text}))
		var broken *SidecarError
		if !errors.As(err, &broken) || !strings.Contains(err.Error(), "Barcode: an identifier is one text or number") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// What producers write is hostile until checked.
func TestBrokenSidecars(t *testing.T) {
	long := strings.Repeat("x", maxMetadataValue+1)
	for name, c := range map[string]struct{ file, text, want string }{
		"no JSON":         {"metadata.json", "{\n\"a\": ,}", "metadata.json: line 2: no JSON from here on"},
		"an array":        {"metadata.json", "[1]", "expected an object"},
		"null":            {"metadata.json", "null", "expected an object"},
		"two objects":     {"metadata.json", "{} {}", "something follows"},
		"out of range":    {"metadata.json", `{"place": {"year": [1, -1e400]}}`, "place.year.1: the number is out of range"},
		"deep":            {"metadata.json", `{"a": ` + strings.Repeat("[", 50) + strings.Repeat("]", 50) + "}", "nested deeper than 20"},
		"very deep":       {"metadata.json", `{"a": ` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + "}", "metadata.json: "},
		"long value":      {"metadata.json", `{"a": "` + long + `"}`, "a has 65537 bytes; the limit is 65536"},
		"long in all":     {"metadata.json", `{"a": ["` + long + strings.Repeat(`","`+long, 20) + `"]}`, "takes more than 1048576 bytes in all"},
		"long name":       {"metadata.json", `{"` + strings.Repeat("k", 300) + `": 1}`, "the name of a field"},
		"line in a name":  {"metadata.json", `{"a\nBagpipe-Item: x": 1}`, "the name of a field"},
		"not UTF-8":       {"metadata.json", "{\n\"a\": \"\xff\"}", "metadata.json: line 2 is not in UTF-8; save"},
		"cut short":       {"metadata.json", "{\n\"a\": \"b\n", "line 2: "},
		"cut at its end":  {"metadata.json", "{\n\"a\": \"b\"\n", "line 2: ends before its object does"},
		"empty":           {"metadata.json", "", "line 1: ends before"},
		"an open quote":   {"metadata.csv", "a,b\n\"1,2\n", "metadata.csv: line 2, column"},
		"another drop":    {"metadata.csv", "drop,b\nx,2\n", "has no line for the drop letters"},
		"no head":         {"metadata.csv", "", "has no head line"},
		"same columns":    {"metadata.csv", "a,a\n1,2\n", "column 2 has no name of its own"},
		"ragged":          {"metadata.csv", "a,b\n1,2,3\n", "metadata.csv: line 2 has not the 2 columns"},
		"two lines":       {"metadata.csv", "a,b\n1,2\n3,4\n", "has 2 lines"},
		"file not there":  {"metadata.csv", "file,b\nx.tif,2\n", `line 2: "x.tif" is not in the drop`},
		"file outside":    {"metadata.csv", "file,b\n../../x,2\n", "line 2: names no file of the drop"},
		"tags not UTF-8":  {"bag-info.txt", "A: \xff\n", "is not in UTF-8"},
		"more than a few": {"metadata.csv", manyColumns(1500), "line 1: has 1500 columns; the limit is 1001"},
		"a million":       {"metadata.csv", manyColumns(1 << 19), "columns; the limit is 1001"}, // hours, were they compared with each other
		"more than one":   {"metadata.json", `{` + strings.Repeat(`"x":1,`, 10) + strings.Join(manyFields(1500), ",") + `}`, "has 1501 fields; the limit is 1000"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := ReadMetadata(context.Background(), &settings.MetadataSettings{}, CarReader{Shared: &SharedTable{}}, sidecarDrop(t, map[string]string{c.file: c.text}))
			var broken *SidecarError
			if !errors.As(err, &broken) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("metadata = %v, want %q", err, c.want)
			}
		})
	}
	drop := sidecarDrop(t, map[string]string{"a": "x"})
	shared := filepath.Join(t.TempDir(), "metadata.csv")
	if err := os.WriteFile(shared, []byte("name\ttitle\nletters\tLetters\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	beside := drop
	beside.Shared = shared
	if _, _, err := ReadMetadata(context.Background(), &settings.MetadataSettings{}, CarReader{Shared: &SharedTable{}}, beside); err == nil || !strings.Contains(err.Error(), `line 1: the first column of a table beside the drops is to be "drop", their names; here it is "name\ttitle"`) {
		t.Errorf("a table beside the drops with another head: %v", err)
	}
	for name, make := range map[string]func(path string) error{
		"a FIFO":   func(p string) error { return unix.Mkfifo(p, 0o644) },
		"a folder": func(p string) error { return os.Mkdir(p, 0o755) },
		"a link":   func(p string) error { return os.Symlink("/etc/passwd", p) },
		"huge":     func(p string) error { return errors.Join(os.WriteFile(p, nil, 0o644), os.Truncate(p, 1<<40)) },
	} {
		path := filepath.Join(drop.Path, "metadata.json")
		if err := errors.Join(os.RemoveAll(path), make(path)); err != nil {
			t.Fatal(err)
		}
		var broken *SidecarError
		if _, _, err := ReadMetadata(context.Background(), &settings.MetadataSettings{}, CarReader{Shared: &SharedTable{}}, drop); !errors.As(err, &broken) {
			t.Errorf("%s: metadata = %v", name, err)
		}
	}
}

func manyColumns(n int) string {
	var head, row []string
	for i := range n {
		head, row = append(head, fmt.Sprintf("%x", i)), append(row, "1")
	}
	return strings.Join(head, ",") + "\n" + strings.Join(row, ",") + "\n"
}

func manyFields(n int) (fields []string) {
	for i := range n {
		fields = append(fields, fmt.Sprintf(`"k%d":1`, i))
	}
	return fields
}

// The table beside many drops is read once for all of them, and again when it changed;
// one that may change without a sign of it, or is too large, is read each time.
func TestTheTableBesideTheDropsIsReadOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "metadata.csv")
	shared := &SharedTable{now: func() time.Time { return time.Now().Add(time.Hour) }}
	write := func(text string) {
		t.Helper()
		temp := path + ".new"
		if err := errors.Join(os.WriteFile(temp, []byte(text), 0o644), os.Rename(temp, path)); err != nil {
			t.Fatal(err)
		}
	}
	wants := func(name, want string) {
		t.Helper()
		into := map[string]any{}
		err := shared.readShared(file{path: path, name: "metadata.csv", drops: true}, into, inbox.Taken{Name: name})
		if got := fmt.Sprint(into, err); got != want {
			t.Errorf("%s: %.200s, want %s", name, got, want)
		}
	}
	write("drop,title\na,A\nb,B\nb,B2\n")
	wants("a", "map[title:A] <nil>")
	wants("b", "map[title:B2] <nil>")
	wants("c", "map[] <nil>")
	shared.rows["a"] = [][]string{{"a", "kept"}}
	wants("a", "map[title:kept] <nil>")
	write("drop,shelf\na,B\nb,B\nb,B2\n")
	wants("a", "map[shelf:B] <nil>")
	write("drop,shelf\na,B\nb\n")
	wants("a", "map[shelf:B] metadata.csv: line 3 has not the 2 columns that its head line has")
	wants("b", "map[] metadata.csv: line 3 has not the 2 columns that its head line has")

	write("drop,shelf\na,1\n" + strings.Repeat("b,2\n", maxSharedFields))
	wants("a", "map[shelf:1] <nil>")
	if shared.rows != nil {
		t.Error("a table of a million fields is kept")
	}
	shared.now = nil
	write("drop,shelf\na,3\n")
	wants("a", "map[shelf:3] <nil>")
	if shared.rows != nil {
		t.Error("a table that was just written is kept")
	}
}
