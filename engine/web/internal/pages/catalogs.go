package pages

import (
	"net/http"

	"bagpipe/engine/catalog"
)

type catalogRow struct {
	catalog.Row
	Unread      int    // folders and entries
	Unconfirmed int    // folders: they are listed, and were not looked at
	Which       string // the condition of its items
}

// catalogs shows the folders whose objects are items and stay where they are.
func (p capabilities) catalogs(_ http.ResponseWriter, r *http.Request) (string, any, error) {
	if err := p.d.Whole(r.Context()); err != nil {
		return "", nil, err
	}
	var rows []catalogRow
	all, err := p.d.Catalog.Rows()
	for _, c := range all {
		rows = append(rows, catalogRow{c, c.States[catalog.Unread] + c.Waiting, c.States[catalog.Unconfirmed], `source.place.catalog == "` + string(c.Name) + `"`})
	}
	return "catalogs", rows, err
}
