package notices

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"bagpipe/engine/disposal"
	"bagpipe/engine/notice"
	"bagpipe/engine/search"
	"bagpipe/layout"
)

// slowEvery is how often that is asked which takes a look at every item.
const slowEvery = 10 * time.Minute

// once begins the key of news that is told, and does not stand: it is never mended.
const once = "once "

// mostHits is of how many hits of a search it is remembered that they were told.
const mostHits = 10_000

// slow is what was asked last of all items.
type slow struct {
	at  time.Time
	due map[string]News
}

// hits are the items that a saved search found, sorted; what it asks is told by its text.
type hits struct {
	Of    string          `json:"of"`
	Items []layout.ItemID `json:"items"`
}

// due is what is to be disposed of, and which proposals wait for a person's word.
func (t *Teller) due(ctx context.Context) (map[string]News, error) {
	now := t.ledger.Now()
	if t.Disposal == nil || t.slow.due != nil && now.Sub(t.slow.at) < slowEvery && !now.Before(t.slow.at) {
		return t.slow.due, nil
	}
	all := map[string]News{}
	due, err := t.Disposal.Due(ctx)
	if err != nil {
		return nil, err
	}
	for _, d := range due {
		if d.Open == "" {
			all["disposal "+string(d.Item)] = News{Kind: notice.Disposal, Item: d.Item, Collection: d.Collection, Label: d.Label, Message: "its time is over, by rule " + d.Rule, Since: d.Since}
		}
	}
	rows, err := t.Disposal.List(ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		if r.Status == disposal.Proposed {
			all["disposal "+r.Key] = News{Kind: notice.Disposal, Label: r.Key, Message: "to be approved: the disposal of " + layout.Count(len(r.Items), "item") + ": " + r.Reason, Since: r.At}
		}
	}
	t.slow = slow{now, all}
	return all, nil
}

// newHits is what saved searches find that they did not find before. What a search finds when it
// is seen for the first time is not new.
func (t *Teller) newHits(ctx context.Context, k *kept) (map[string]News, error) {
	all := map[string]News{}
	saved := t.settings.Current().Searches
	maps.DeleteFunc(k.Hits, func(name string, _ hits) bool { return saved[name] == nil })
	if t.Search == nil {
		return all, nil
	}
	for name, s := range saved {
		was, known := k.Hits[name]
		is := hits{Of: fmt.Sprintf("%+v", s.Query)}
		err := t.Search.Find(ctx, s.Query, mostHits, func(h search.Hit) bool {
			is.Items = append(is.Items, h.Item)
			if _, there := slices.BinarySearch(was.Items, h.Item); known && was.Of == is.Of && !there {
				all[once+"search "+name+" "+string(h.Item)] = News{Kind: notice.Searches, Item: h.Item, Label: h.Label, Message: "found by " + name, Since: t.ledger.Now()}
			}
			return len(is.Items) < mostHits
		})
		if err != nil {
			return nil, fmt.Errorf("saved search %s: %w", name, err)
		}
		slices.Sort(is.Items)
		if k.Hits == nil {
			k.Hits = map[string]hits{}
		}
		k.Hits[name] = is
	}
	return all, nil
}
