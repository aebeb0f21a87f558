package ask

import (
	"encoding/base64"
	"encoding/json"
	"iter"
	"slices"

	"bagpipe/engine/fault"
	"bagpipe/engine/queue"
	"bagpipe/layout"

	"github.com/tidwall/gjson"
)

// cursor is the last item of a page, as it was when it was listed: the next page goes on after
// it, wherever it has moved since.
type cursor struct {
	Item layout.ItemID     `json:"i"`
	Sort []string          `json:"s,omitempty"`
	Raw  []json.RawMessage `json:"k,omitempty"` // of keys; null: nothing stood there

	keys []gjson.Result
}

// Cursor is the place behind an item in a listing that is sorted so; a Page goes on after it.
func (li *Lists) Cursor(id layout.ItemID, sort []string) (string, error) {
	c := cursor{Item: id, Sort: sort}
	it := li.index.Loaded().Item(id)
	if it == nil {
		return "", fault.New(fault.NotFound, "the last item of the page is not there any more")
	}
	a, err := li.Asker(nil)
	if err != nil {
		return "", err
	}
	if len(sort) > 0 {
		for _, key := range a.keysOf(it, sort) {
			raw := json.RawMessage("null")
			if key.Exists() {
				if raw, err = json.Marshal(key.Value()); err != nil {
					return "", err
				}
			}
			c.Raw = append(c.Raw, raw)
		}
	}
	data, err := json.Marshal(c)
	return base64.RawURLEncoding.EncodeToString(data), err
}

// readCursor reads a cursor of a listing that is sorted so.
func readCursor(text string, sort []string) (c cursor, err error) {
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(data, &c)
	}
	if err != nil || !slices.Equal(c.Sort, sort) || len(c.Raw) != len(sort) {
		return c, fault.New(fault.Invalid, "the cursor is not one of this listing; begin with its first page")
	}
	for _, raw := range c.Raw {
		c.keys = append(c.keys, gjson.ParseBytes(raw))
	}
	return c, nil
}

// each visits the items of a page, until visit reports false.
func (li *Lists) each(f Filter, page Page, visit func(*queue.Item) bool) error {
	items, n, err := li.paged(f, page)
	if err != nil {
		return err
	}
	for it := range items {
		if page.Limit > 0 && n == page.From+page.Limit {
			break
		}
		if n++; n > page.From && !visit(it) {
			break
		}
	}
	return nil
}

// paged gives the items that fit in the order of a page, from its cursor on, and how many it has left
// out already: by the table all that the page skips, none of which is read then.
func (li *Lists) paged(f Filter, page Page) (items iter.Seq[*queue.Item], skipped int, err error) {
	var c cursor
	var last *queue.Item
	if page.After != "" {
		if c, err = readCursor(page.After, page.Sort); err != nil {
			return nil, 0, err
		}
		if last = li.index.Loaded().Item(c.Item); last == nil {
			return nil, 0, fault.New(fault.Invalid, "the item of the cursor is not there any more; begin with the first page")
		}
	}
	if len(page.Sort) == 0 {
		return li.selectedAfter(f, last, page.From)
	}
	if items, err = li.selected(f); err != nil {
		return nil, 0, err
	}
	items, err = li.sorted(items, page.Sort, f.Asked, last, c.keys)
	return items, 0, err
}

// sorted gives items in an order of paths; with last, those that come after what stood there
// when it was listed.
func (li *Lists) sorted(items iter.Seq[*queue.Item], by []string, asked *Asked, last *queue.Item, keys []gjson.Result) (iter.Seq[*queue.Item], error) {
	a, err := li.Asker(asked)
	if err != nil {
		return nil, err
	}
	var list []queue.Entry
	for it := range items {
		if last != nil {
			if c := compareKeys(by, a.keysOf(it, by), keys); c < 0 || c == 0 && queue.CompareAge(it, last) <= 0 {
				continue
			}
		}
		list = append(list, queue.Entry{Item: it})
	}
	a.order(list, by)
	return func(yield func(*queue.Item) bool) {
		for _, en := range list {
			if !yield(en.Item) {
				return
			}
		}
	}, nil
}
