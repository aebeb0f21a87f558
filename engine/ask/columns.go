package ask

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"bagpipe/engine/condition"
	"bagpipe/engine/ledger"
	"bagpipe/engine/queue"
	"bagpipe/engine/state"
	"bagpipe/layout"

	"github.com/tidwall/gjson"
)

// rowColumns are the columns that tell where an item stands, by their keys in ItemRow;
// others are paths of its records.
var rowColumns = []string{"item", "collection", "label", "lane", "created", "workflow", "status", "step", "since", "why", "held", "heldBy", "waitsForPerson", "otherWorkflows",
	"parent", "children", "childrenFailed"}

// CheckColumns refuses a column that is neither one of an ItemRow nor a path as conditions
// have them.
func CheckColumns(columns []string) error {
	for _, c := range columns {
		if slices.Contains(rowColumns, c) {
			continue
		}
		if err := condition.CheckPath(c); err != nil {
			return err
		}
	}
	return nil
}

// Misspelt refuses columns that no item has and whose first name is no key of the records.
func (q *Asked) Misspelt(columns []string) error {
	for _, path := range q.Missing() {
		if slices.Contains(columns, path) && !slices.Contains(rowColumns, path) && layout.CheckRecordPath(path) != nil {
			return fmt.Errorf("no item that was looked at has %s; expected %s, or a path such as metadata.title, source.bytes or execution.milestones.archived",
				path, strings.Join(rowColumns, ", "))
		}
	}
	return nil
}

// Columns lists, of each item, what stands at some columns; a value that is not there does
// not exist.
func (li *Lists) Columns(f Filter, page Page, columns []string) ([][]gjson.Result, error) {
	rows := [][]gjson.Result{}
	err := li.EachRow(f, page, columns, func(row []gjson.Result) bool {
		rows = append(rows, row)
		return true
	})
	if err != nil {
		return nil, err
	}
	return rows, nil
}

// EachRow is Columns of items that are too many to be kept: each is visited, until visit reports
// false.
func (li *Lists) EachRow(f Filter, page Page, columns []string, visit func([]gjson.Result) bool) error {
	a, err := li.Asker(f.Asked)
	if err != nil {
		return err
	}
	var broken error
	err = li.each(f, page, func(it *queue.Item) bool {
		var row []gjson.Result
		row, broken = a.columns(it, columns)
		return broken == nil && visit(row)
	})
	return cmp.Or(err, broken)
}

func (a asker) columns(it *queue.Item, columns []string) ([]gjson.Result, error) {
	values := a.asked.note(a.lists.ValuesOf(a.R, it, a.Facets))
	line, err := json.Marshal(a.lists.row(it))
	if err != nil {
		return nil, err
	}
	row := make([]gjson.Result, len(columns))
	for i, c := range columns {
		if slices.Contains(rowColumns, c) {
			row[i] = gjson.GetBytes(line, c)
		} else {
			row[i] = values(c)
		}
	}
	return row, nil
}

// WarnedRow is a step that is completed, and whose robot's message has warnings.
type WarnedRow struct {
	Item       layout.ItemID `json:"item"`
	Collection layout.Name   `json:"collection"`
	Label      string        `json:"label"`
	Workflow   string        `json:"workflow"`
	Step       layout.Name   `json:"step"`
	Ended      time.Time     `json:"ended"`
	Message    string        `json:"message"`
}

// warns finds warnings in what the robot of a completed step said: "2 warnings, first: …", "3 with
// warnings", "warning: …", "1 not read", "2 not scanned", "3 left out", and not "0 warnings".
var warns = regexp.MustCompile(`(?i)\b0*[1-9][0-9]* ((further )?warnings?|not read|not scanned|left out)\b|\bwith (a )?warnings?\b|\bwarning:`)

// Warned lists the steps completed with warnings, of the items that fit: of each item the latest
// attempts of its steps. The messages stand in the items' records, which are read one by one.
func Warned(li *Lists, f Filter, page Page) ([]WarnedRow, error) {
	v, err := li.ledger.Store.Tip()
	if err != nil {
		return nil, err
	}
	items, _, err := li.paged(f, Page{Sort: page.Sort, After: page.After}) // of an item there may be several rows, or none
	if err != nil {
		return nil, err
	}
	rows := []WarnedRow{}
	for it := range items {
		read, err := ledger.ReadRecords(v, it.ID)
		if err != nil || read.Execution == nil || it.Broken != "" || it.Disposed() {
			continue // status and show tell of records that cannot be read
		}
		x, err := state.Decode(read.Execution)
		if err != nil {
			continue
		}
		for r := range it.Runs {
			run := &it.Runs[r]
			if w := x.Workflows[run.Name]; w != nil && (f.Workflow == "" || f.Workflow == run.Plan.Name || f.Workflow == run.Name) {
				rows = append(rows, warnedSteps(it, run, w, f.Step)...)
			}
		}
	}
	if rows = rows[min(page.From, len(rows)):]; page.Limit > 0 {
		rows = rows[:min(page.Limit, len(rows))]
	}
	return rows, nil
}

func warnedSteps(it *queue.Item, run *queue.Run, w *state.Workflow, only layout.Name) (rows []WarnedRow) {
	for i := range run.Steps {
		name := layout.Name(run.Plan.Steps[i].Name)
		if s := w.Steps[name]; s != nil && run.Steps[i].Status == state.Completed && (only == "" || only == name) {
			if _, a, ok := s.Current(); ok && warns.MatchString(a.Message) {
				rows = append(rows, WarnedRow{it.ID, it.Collection, it.Label, run.Name, name, a.Ended, a.Message})
			}
		}
	}
	return rows
}
