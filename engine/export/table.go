package export

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const fixityTable = "fixity"

// Tables are the tables of CSV and JSONL.
var Tables = []string{"items", "attempts", "events", "deposits", fixityTable}

// table writes rows; a row's first cells are the item's.
type table struct {
	out     *bufio.Writer
	csv     *csv.Writer // nil: JSON lines
	columns []string
	rows    func(r *record, row func(cells ...string))
}

var ofItem = []string{"item", "collection", "label"}

func newTable(out *bufio.Writer, name string, lines bool) (*table, error) {
	t := &table{out: out}
	var columns []string
	switch name {
	case "items", "":
		columns, t.rows = []string{"version", "lane", "batch", "created", "source", "kind", "files", "bytes", "digest"}, itemRows
	case "attempts":
		columns, t.rows = []string{"run", "step", "attempt", "state", "kind", "claimed", "started", "ended", "elapsed", "runner", "by", "message"}, attemptRows
	case "events":
		columns, t.rows = []string{"event", "at", "by", "run", "step", "text"}, eventRows
	case "deposits":
		columns, t.rows = []string{"target", "version", "layout", "place", "state", "files", "bytes", "digest", "written", "verified", "retention", "outcome", "message"}, depositRows
	case fixityTable:
		columns, t.rows = []string{"copy", "at", "outcome", "path", "files", "bytes", "message"}, fixityRows
	default:
		return nil, fmt.Errorf("no table %q; the tables are %s", name, strings.Join(Tables, ", "))
	}
	t.columns = slices.Concat(ofItem, columns)
	if !lines {
		t.csv = csv.NewWriter(out)
		return t, t.csv.Write(t.columns)
	}
	return t, nil
}

func (t *table) item(r *record) (err error) {
	t.rows(r, func(cells ...string) {
		if err == nil {
			err = t.row(append([]string{string(r.Manifest.Item), string(r.Manifest.Collection), r.Manifest.Label}, cells...))
		}
	})
	return err
}

func (t *table) row(cells []string) error {
	if t.csv != nil {
		for i := range cells {
			cells[i] = Unformula(cells[i])
		}
		return t.csv.Write(cells)
	}
	row := map[string]any{}
	for i, name := range t.columns {
		if row[name] = cells[i]; numbers[name] {
			row[name] = json.Number(cells[i])
		}
	}
	data, err := json.Marshal(row)
	if err == nil {
		_, err = t.out.Write(append(data, '\n'))
	}
	return err
}

// numbers are the columns that hold one.
var numbers = map[string]bool{"version": true, "files": true, "bytes": true, "elapsed": true}

// Unformula keeps a spreadsheet from running a cell: an apostrophe goes before what it would.
func Unformula(cell string) string {
	if first, _ := utf8.DecodeRuneInString(cell); cell != "" && strings.ContainsRune("=+-@\t\r\n＝＋－＠", first) { // some take the wide signs, too
		return "'" + cell
	}
	return cell
}

func (t *table) end() error {
	if t.csv == nil {
		return nil
	}
	t.csv.Flush()
	return t.csv.Error()
}

func itemRows(r *record, row func(...string)) {
	m := r.Manifest
	row(strconv.Itoa(r.version()), string(m.Lane), m.Batch, stamp(m.Created), m.Source.Name, m.Source.Kind,
		strconv.Itoa(m.Source.Files), strconv.FormatInt(m.Source.Bytes, 10), m.Source.Digest)
}

func attemptRows(r *record, row func(...string)) {
	for _, d := range r.ended() {
		row(d.run, d.step, d.key.String(), string(d.State), d.Kind, stamp(d.Claimed), stamp(d.Started), stamp(d.Ended),
			strconv.FormatFloat(d.Elapsed, 'f', 3, 64), d.Runner, d.By, d.Message)
	}
}

func eventRows(r *record, row func(...string)) {
	x := r.Execution
	for _, name := range slices.Sorted(maps.Keys(x.Milestones)) {
		row("milestone "+string(name), stamp(x.Milestones[name]), "", "", "", "")
	}
	for _, key := range slices.Sorted(maps.Keys(x.Intents)) {
		in := x.Intents[key]
		row(in.Kind, stamp(in.At), in.By, in.Workflow, string(in.Step), in.Text)
	}
}

func depositRows(r *record, row func(...string)) {
	for _, c := range r.copies() {
		row(string(c.target), strconv.Itoa(c.version), c.Layout, c.Place, c.State, strconv.Itoa(c.Files), strconv.FormatInt(c.Bytes, 10), c.Digest,
			stamp(c.Written), stamp(c.Verified), stamp(c.Retention), c.Outcome, c.Message)
	}
}

func fixityRows(r *record, row func(...string)) {
	onTargets, own := r.looks()
	for _, l := range slices.Concat(own, onTargets) {
		row(l.name(), stamp(l.At), l.Outcome, l.Path, strconv.Itoa(l.Files), strconv.FormatInt(l.Bytes, 10), l.Message)
	}
}
