package ask

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"bagpipe/engine/condition"
	"bagpipe/engine/queue"
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
		if first, _, _ := strings.Cut(path, "."); slices.Contains(columns, path) && !slices.Contains(layout.RecordKeys(), first) {
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
