package sidecar

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bagpipe/bags/archive"
	"bagpipe/engine/inbox"
	"bagpipe/engine/settings"
)

// entry is a member of an archive of the test's.
type entry struct{ name, text string }

func zipOf(t *testing.T, entries ...entry) inbox.Taken {
	t.Helper()
	var buf bytes.Buffer
	z := zip.NewWriter(&buf)
	for _, e := range entries {
		w, err := z.Create(e.name)
		if err == nil {
			_, err = w.Write([]byte(e.text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return dropOf(t, "drop.zip", buf.Bytes())
}

func dropOf(t *testing.T, name string, data []byte) inbox.Taken {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return inbox.Taken{Name: name, Path: path, Kind: inbox.File}
}

func packedFields(t *testing.T, drop inbox.Taken) (map[string]any, error) {
	t.Helper()
	fields, _, err := ReadMetadata(context.Background(), &settings.MetadataSettings{}, CarReader{Shared: &SharedTable{}}, drop)
	return fields, err
}

// Only what stands at the top of an archive, or of the folder that alone holds
// everything, is read; what is too large, or of no file in it, is told.
func TestSidecarsInAnArchive(t *testing.T) {
	title := func(s string) string { return fmt.Sprintf(`{"title": %q}`, s) }
	for about, c := range map[string]struct {
		entries []entry
		want    string // of the title, or what the error says
	}{
		"at the top":               {[]entry{{"metadata.json", title("a")}, {"x/y", "z"}}, "a"},
		"in the only folder":       {[]entry{{"x/metadata.json", title("b")}, {"x/y", "z"}}, "b"},
		"in one of two folders":    {[]entry{{"x/metadata.json", title("c")}, {"y/y", "z"}}, ""},
		"of the first of two":      {[]entry{{"y/y", "z"}, {"x/metadata.json", title("d")}}, ""},
		"deeper":                   {[]entry{{"x/y/metadata.json", title("e")}, {"x/y/z", "z"}}, ""},
		"json before csv":          {[]entry{{"metadata.csv", "title\nf\n"}, {"metadata.json", title("g")}}, "g"},
		"too large":                {[]entry{{"metadata.json", strings.Repeat(" ", maxSidecar+1)}, {"x", "y"}}, "drop.zip/metadata.json: is larger than"},
		"about files":              {[]entry{{"t/metadata.csv", "file,title\nx.txt,h\n"}, {"t/x.txt", "y"}, {"t/metadata.json", title("h")}}, "h"},
		"about a file not in it":   {[]entry{{"metadata.csv", "file,title\nz.txt,h\n"}, {"x.txt", "y"}}, `drop.zip/metadata.csv: line 2: "z.txt" is not in the drop`},
		"tags that are not UTF-8":  {[]entry{{"bag-info.txt", "A: \xff\n"}, {"x", "y"}}, "drop.zip/bag-info.txt: line 1 is not in UTF-8"},
		"hostile: nothing is read": {[]entry{{"metadata.json", title("i")}, {"../x", "y"}}, ""},
	} {
		fields, err := packedFields(t, zipOf(t, c.entries...))
		got, _ := fields["title"].(string)
		if err != nil {
			got = err.Error()
		}
		if got != c.want && (err == nil || !strings.HasPrefix(got, c.want)) {
			t.Errorf("%s: %q, want %q", about, got, c.want)
		}
	}
}

// An archive of very many folders with a side-car each takes no more memory than its
// names do: those of one folder are kept.
func TestSidecarsInManyFolders(t *testing.T) {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for i := range 3000 {
		text := []byte(`{"title": "x"}`)
		if err := w.WriteHeader(&tar.Header{Name: fmt.Sprintf("%d/metadata.json", i), Size: int64(len(text)), Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	drop := dropOf(t, "many.tar", buf.Bytes())
	p := &packedReader{packed: packed{names: map[string]bool{}}, found: map[string][]byte{}}
	if _, err := archive.Inspect(context.Background(), drop.Path, archive.InspectOptions{Member: p.member,
		Peek: &archive.Peek{Max: maxSidecar, Want: p.wants, Got: func(path string, data []byte) { p.found[path] = data }}}); err != nil {
		t.Fatal(err)
	}
	if len(p.found) != 1 {
		t.Errorf("%d are kept", len(p.found))
	}
	if fields, err := packedFields(t, drop); err != nil || len(fields) != 0 {
		t.Errorf("%v, %v", fields, err)
	}
}

// Of a format whose members cannot be read one by one it is told, without fault.
func TestSidecarThatIsNotReadInItsArchive(t *testing.T) {
	p := &packedReader{packed: packed{names: map[string]bool{}}, found: map[string][]byte{}}
	p.member(archive.Member{Path: "t", Folder: true})
	p.member(archive.Member{Path: "t/metadata.json"})
	var unread *UnreadError
	if _, err := p.sidecars("a.7z", archive.SevenZip); !errors.As(err, &unread) || err.Error() != "a.7z/t/metadata.json: is not read within a 7z; put it beside it" {
		t.Errorf("%v", err)
	}
}

// Of many archives with side-cars that come at once only a few are looked through at a
// time; a drop without any does not wait for them.
func TestSidecarsWaitForTheirTurn(t *testing.T) {
	turn := make(chan struct{}, CarsAtOnce)
	busy := CarReader{Shared: &SharedTable{}, Turn: turn}
	for range CarsAtOnce {
		turn <- struct{}{}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	set := settings.DropSettings{Metadata: &settings.MetadataSettings{}}
	archive := zipOf(t, entry{"metadata.json", `{"title": "a"}`})
	if _, _, err := ReadMetadata(ctx, set.Metadata, busy, archive); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("beside %d others: %v", CarsAtOnce, err)
	}
	if _, _, err := ReadMetadata(context.Background(), set.Metadata, busy, dropOf(t, "plain.txt", []byte("text"))); err != nil {
		t.Errorf("a plain file: %v", err)
	}
	<-turn
	for range 2 {
		if fields, _, err := ReadMetadata(context.Background(), set.Metadata, busy, archive); err != nil || fields["title"] != "a" {
			t.Errorf("with room: %v, %v", fields, err)
		}
	}
}
