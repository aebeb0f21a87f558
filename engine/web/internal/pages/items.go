package pages

import (
	"cmp"
	"encoding/csv"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"bagpipe/engine/ask"
	"bagpipe/engine/export"
	"bagpipe/engine/fault"
	"bagpipe/engine/web/internal/desk"

	"github.com/tidwall/gjson"
)

// perPage is how many items a page lists, and mostPerPage how many it may be asked for.
const (
	perPage     = 50
	mostPerPage = 1000
)

type itemsView struct {
	Rows       []ask.ItemRow
	Facets     []facetGroup
	Narrowed   []facetValue // what narrows the list beside facets; Path leaves it out
	Total      int
	From, Last int
	Next       string
	First      string // the first page
	CSV        string
	Unknown    []string // of a pasted list
	Sort       string
	Columns    []string // beside the item; none: the usual ones
	Cells      [][]string
	Query      string              // of the list, for an act on all of it
	Keep       map[string][]string // what the filter box hands on
}

type facetGroup struct {
	Name   string
	Values []facetValue
	More   int // values that are not listed, the rarest
}

type facetValue struct {
	Value string
	N     int
	On    bool
	Path  string
}

// items lists items beside their facets.
func (p *Pages) items(_ http.ResponseWriter, r *http.Request) (string, any, error) {
	ctx, q := r.Context(), r.URL.Query()
	f, err := p.d.Filter(ctx, q)
	if err != nil {
		return "", nil, err
	}
	from, err := desk.Number("seen", q.Get("seen"), 1<<30, 0)
	if err != nil {
		return "", nil, err
	}
	limit, err := desk.Number("limit", q.Get("limit"), mostPerPage, perPage)
	if err != nil {
		return "", nil, err
	}
	page := ask.Page{Limit: cmp.Or(limit, perPage), After: q.Get("cursor")}
	page.Sort, f.Asked = listOf(q.Get("sort")), &ask.Asked{}
	for _, by := range page.Sort {
		if err := ask.CheckColumns([]string{strings.TrimPrefix(by, "-")}); err != nil {
			return "", nil, fault.New(fault.Invalid, err.Error())
		}
	}
	v := itemsView{From: from + 1, Sort: q.Get("sort"), First: "items?" + with(q, "", ""), Query: with(q, "", ""), CSV: "items.csv?" + with(q, "", ""), Keep: map[string][]string{"facet": q["facet"]}}
	if v.Rows, err = p.d.Ask.Items(f, page); err != nil {
		return "", nil, err
	}
	if err := f.Asked.Misspelt(sortedBy(page.Sort)); err != nil {
		return "", nil, fault.New(fault.Invalid, err.Error())
	}
	if v.Columns = listOf(q.Get("columns")); len(v.Columns) > 0 {
		if v.Cells, err = p.cells(f, page, v.Columns); err != nil {
			return "", nil, err
		}
	}
	total, facets, err := p.d.Ask.CountItems(f)
	if err != nil {
		return "", nil, err
	}
	v.Total = total
	v.Last = from + len(v.Rows)
	if v.Last < v.Total && len(v.Rows) > 0 {
		next, err := p.d.Ask.Cursor(v.Rows[len(v.Rows)-1].Item, page.Sort)
		if err != nil {
			return "", nil, err
		}
		v.Next = "items?" + with(q, "cursor", next) + "&seen=" + strconv.Itoa(v.Last)
	}
	v.Facets = facetsOf(q, facets)
	for _, name := range []string{"collection", "workflow", "step", "status", "lane", "batch", "reached", "failure", "older", "held", "parent", "where", "q"} {
		if value := q.Get(name); value != "" {
			v.Narrowed = append(v.Narrowed, facetValue{Value: name + ": " + value, Path: "items?" + with(q, name, "")})
		}
	}
	v.Unknown = p.d.Unlisted(ctx, q.Get("list"))
	return "items", v, nil
}

// with is a query with one name changed, from the first page on; "" leaves the name out.
func with(q url.Values, name, value string) string {
	out := url.Values{}
	for n, values := range q {
		if n != name && n != "cursor" && n != "seen" && n != "did" {
			out[n] = values
		}
	}
	if value != "" {
		out.Set(name, value)
	}
	return out.Encode()
}

// sortedBy are the paths of an order.
func sortedBy(order []string) (paths []string) {
	for _, by := range order {
		paths = append(paths, strings.TrimPrefix(by, "-"))
	}
	return paths
}

// listOf parts a list at its commas.
func listOf(text string) (list []string) {
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	return list
}

// cells are what stands at columns of the items of a page.
func (p *Pages) cells(f ask.Filter, page ask.Page, columns []string) (cells [][]string, err error) {
	if err := ask.CheckColumns(columns); err != nil {
		return nil, fault.New(fault.Invalid, err.Error())
	}
	rows, err := p.d.Ask.Columns(f, page, columns)
	for _, row := range rows {
		var line []string
		for _, v := range row {
			line = append(line, v.String())
		}
		cells = append(cells, line)
	}
	return cells, err
}

// facetsOf groups what was counted.
func facetsOf(q url.Values, counted []ask.Facet) (groups []facetGroup) {
	const most = 12
	for _, x := range counted {
		at := slices.IndexFunc(groups, func(g facetGroup) bool { return g.Name == x.Facet })
		if at < 0 {
			groups = append(groups, facetGroup{Name: x.Facet})
			at = len(groups) - 1
		}
		key := x.Facet + ":" + x.Value
		v := facetValue{Value: x.Value, N: x.Items, On: slices.Contains(q["facet"], key)}
		to := url.Values{}
		for n, values := range q {
			if n != "cursor" && n != "seen" && n != "did" {
				to[n] = values
			}
		}
		to["facet"] = slices.DeleteFunc(slices.Clone(q["facet"]), func(c string) bool { return c == key })
		if !v.On {
			to["facet"] = append(to["facet"], key)
		}
		v.Path = "items?" + to.Encode()
		if v.On || len(groups[at].Values) < most {
			groups[at].Values = append(groups[at].Values, v)
		} else {
			groups[at].More++
		}
	}
	return groups
}

// table sends all items that fit as comma-separated values.
func (p *Pages) table(w http.ResponseWriter, r *http.Request) (string, any, error) {
	f, err := p.d.Filter(r.Context(), r.URL.Query())
	if err != nil {
		return "", nil, err
	}
	names := []string{"item", "collection", "label", "workflow", "status", "step", "since", "why"}
	if asked := listOf(r.URL.Query().Get("columns")); len(asked) > 0 {
		names = append([]string{"item"}, asked...)
	}
	if err := ask.CheckColumns(names); err != nil {
		return "", nil, fault.New(fault.Invalid, err.Error())
	}
	if err := p.d.Ask.CheckFilter(f); err != nil {
		return "", nil, err
	}
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="items.csv"`)
	desk.Patient(w)
	out := csv.NewWriter(w)
	_ = out.Write(names) // who asked is gone
	n := 0
	err = p.d.Ask.EachRow(f, ask.Page{}, names, func(row []gjson.Result) bool {
		var cells []string
		for _, v := range row {
			cells = append(cells, export.Unformula(v.String()))
		}
		if n++; n%1000 == 0 {
			desk.Patient(w)
		}
		return out.Write(cells) == nil
	})
	if err != nil {
		p.d.Log.Error("a table broke off", "error", err)
		panic(http.ErrAbortHandler) // whoever asked must not take it for whole
	}
	out.Flush()
	return "", nil, nil
}
