package main

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"bagpipe/layout"
)

// imported adds n items to a collection as add makes them, by git's own means: add makes some
// hundreds in a second, and a bench needs a hundred thousand. An item's commit is that of one which
// add made, with another identifier and label; together writes all in one commit instead, as
// nothing looks at it. As many more as retired says have a line in retired/ alone.
func (w *workspace) imported(collection string, n, retired int, together bool) (err error) {
	like, err := w.template(collection)
	if err != nil {
		return err
	}
	c := w.b.command("git", "-C", w.root, "-c", "fastimport.unpackLimit=1", "fast-import", "--quiet", "--date-format=raw")
	c.Stderr = os.Stderr
	pipe, err := c.StdinPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	in := bufio.NewWriterSize(pipe, 1<<20)
	like.write(in, w.made, n, retired, together)
	w.made += n
	if err := errors.Join(in.Flush(), pipe.Close(), c.Wait()); err != nil {
		return err
	}
	// A Bagpipe's commits were looked at by their maker.
	if err := os.RemoveAll(filepath.Join(w.root, ".bagpipe")); err != nil {
		return err
	}
	_, err = measure(w.command("maintain"))
	return err
}

// template is an item and its commit.
type template struct {
	id, label string
	about     string // the lines of author and committer, as fast-import reads them
	message   string
	records   map[string]string // by name
	commit    string
}

// template has add make one item, and takes it apart.
func (w *workspace) template(collection string) (t template, err error) {
	if err := w.register(1, "--collection", collection); err != nil {
		return t, err
	}
	t.label, t.records = strconv.Itoa(w.made-1)+".txt", map[string]string{}
	raw, err := w.git("cat-file", "commit", "main")
	if err != nil {
		return t, err
	}
	head, message, _ := strings.Cut(raw, "\n\n")
	for line := range strings.Lines(head + "\n") {
		if strings.HasPrefix(line, "author ") || strings.HasPrefix(line, "committer ") {
			t.about += line
		}
	}
	t.message = message + "\n"
	names, err := w.git("show", "--format=", "--name-only", "main")
	if err != nil {
		return t, err
	}
	for name := range strings.Lines(names) {
		name = strings.TrimSpace(name)
		id, rest, ok := layout.ItemOfPath(name)
		if !ok { // the workflow, pinned with the first item
			continue
		}
		t.id = string(id)
		data, err := w.git("show", "main:"+name)
		if err != nil {
			return t, err
		}
		t.records[rest] = data + "\n"
	}
	t.commit, err = w.git("rev-parse", "main")
	return t, err
}

// write writes a stream of git fast-import; errors are the writer's.
func (t template) write(in io.Writer, from, n, retired int, together bool) {
	begin := func(message string) {
		fmt.Fprintf(in, "commit refs/heads/main\n%sdata %d\n%s\n", t.about, len(message), message)
	}
	file := func(name, data string) { fmt.Fprintf(in, "M 100644 inline %s\ndata %d\n%s\n", name, len(data), data) }
	if together {
		begin("import\n")
		fmt.Fprintf(in, "from refs/heads/main^0\n")
	}
	for i := range n {
		id := newID()
		other := strings.NewReplacer(t.id, string(id), t.label, strconv.Itoa(from+i)+".txt")
		if !together {
			if begin(other.Replace(t.message)); i == 0 {
				fmt.Fprintf(in, "from refs/heads/main^0\n")
			}
		}
		for _, name := range slices.Sorted(maps.Keys(t.records)) {
			file(layout.ItemDir(id)+"/"+name, other.Replace(t.records[name]))
		}
	}
	lines := map[string]layout.Retired{}
	for i := range retired {
		id := newID()
		path := layout.RetiredPath(id)
		if lines[path].Items == nil {
			lines[path] = layout.Retired{Items: map[layout.ItemID]layout.Standing{}}
		}
		lines[path].Items[id] = layout.Standing{Commit: t.commit, Collection: "default", Label: strconv.Itoa(i) + ".txt"}
	}
	for _, path := range slices.Sorted(maps.Keys(lines)) {
		data, err := lines[path].Encode()
		if err != nil {
			panic(err) // there are no such lines
		}
		file(path, string(data))
	}
}

func newID() layout.ItemID {
	id, err := layout.NewItemID(rand.Reader)
	if err != nil {
		panic(err) // crypto/rand does not fail
	}
	return id
}
