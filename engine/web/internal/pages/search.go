package pages

import (
	"maps"
	"net/http"
	"net/url"
	"slices"

	"bagpipe/engine/search"
	"bagpipe/engine/web/internal/desk"
)

type searchView struct {
	Text, From, Until, Where, Collection, Box string // as it was asked here, without what was saved
	Tags                                      []string
	Saved                                     string // the search that it narrows

	Said        string       // all of it; "": nothing is asked
	Narrowed    []facetValue // Path leaves it out
	Hits        []search.Hit
	More        bool
	Facets      []facetGroup
	Searches    []facetValue // that were saved; Path looks
	Collections []string
}

// search finds items by what is written in them, where and when they are from.
func (p capabilities) search(w http.ResponseWriter, r *http.Request) (string, any, error) {
	const most = 100
	ctx, asked := r.Context(), r.URL.Query()
	q, err := p.d.Sought(ctx, asked)
	if err != nil {
		return "", nil, err
	}
	v := searchView{Text: asked.Get("q"), From: asked.Get("from"), Until: asked.Get("until"), Where: asked.Get("where"), Collection: asked.Get("collection"), Box: asked.Get("bbox"),
		Tags: asked["tag"], Saved: asked.Get("saved"), Said: q.String()}
	if err := p.around(&v, r); err != nil || q.Empty() {
		return "search", v, err
	}
	desk.Patient(w)
	if v.Hits, v.More, err = p.d.Find(ctx, q, most); err != nil {
		return "", nil, err
	}
	if p.d.Whole(ctx) == nil && q.Which == nil { // a condition is held against every record
		all, err := p.d.Search.Facets(ctx, q)
		if err != nil {
			return "", nil, err
		}
		v.Facets = inCommon(asked, all)
	}
	return "search", v, nil
}

// around fills in what narrows the search, and what else may be chosen.
func (p capabilities) around(v *searchView, r *http.Request) error {
	asked := r.URL.Query()
	if v.Saved != "" {
		v.Narrowed = append(v.Narrowed, facetValue{Value: "saved: " + v.Saved, Path: "search?" + with(asked, "saved", "")})
	}
	v.Tags = slices.DeleteFunc(slices.Clone(v.Tags), func(tag string) bool { return tag == "" })
	for _, tag := range v.Tags {
		others := maps.Clone(asked)
		others["tag"] = slices.DeleteFunc(slices.Clone(v.Tags), func(t string) bool { return t == tag })
		v.Narrowed = append(v.Narrowed, facetValue{Value: "tag: " + tag, Path: "search?" + others.Encode()})
	}
	saved := p.d.Settings.Current().Searches
	for _, name := range slices.Sorted(maps.Keys(saved)) {
		v.Searches = append(v.Searches, facetValue{Value: name + ": " + saved[name].String(), Path: "search?" + url.Values{"saved": {name}}.Encode()})
	}
	all, err := p.d.Ask.Collections()
	for _, c := range all {
		if desk.Who(r.Context()).Reaches(c.Name) {
			v.Collections = append(v.Collections, c.Name)
		}
	}
	return err
}

// inCommon groups what the items that were found have in common. A value that a search can be
// narrowed by has a path that does.
func inCommon(asked url.Values, counted []search.Facet) (groups []facetGroup) {
	const most = 12
	for _, f := range counted {
		if len(groups) == 0 || groups[len(groups)-1].Name != f.Facet {
			groups = append(groups, facetGroup{Name: f.Facet})
		}
		g := &groups[len(groups)-1]
		if len(g.Values) == most {
			continue
		}
		v := facetValue{Value: f.Value, N: f.Items}
		narrower := maps.Clone(asked)
		switch f.Facet {
		case "collection":
			narrower.Set("collection", f.Value)
		case "tag":
			narrower["tag"] = append(slices.Clone(asked["tag"]), f.Value)
		case "year":
			narrower.Set("from", f.Value)
			narrower.Set("until", f.Value)
		default:
			narrower = nil
		}
		if v.On = narrower != nil && slices.Contains(append(asked["tag"], asked.Get("collection")), f.Value); narrower != nil && !v.On {
			v.Path = "search?" + narrower.Encode()
		}
		g.Values = append(g.Values, v)
	}
	return groups
}
