package feed

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"bagpipe/engine/audience"
	"bagpipe/engine/fault"
)

// CheckPerson refuses a name that no file in feeds/people has. Whoever has none is known by an address.
func (f *Feeds) CheckPerson(ctx context.Context, name string) error {
	book, err := f.bookNow(ctx)
	if err != nil || strings.Contains(name, "@") || book.People[name] != nil {
		return err
	}
	return fault.Unknown("person", name, " in "+audience.PeopleDir+"/", maps.Keys(book.People))
}

// bookNow is what is in force.
func (f *Feeds) bookNow(ctx context.Context) (*audience.Book, error) {
	v, err := f.ledger.Store.Tip()
	if err != nil {
		return nil, err
	}
	return f.bookAt(ctx, v)
}

// WhyEmpty says why the feed of a person, or else that of a collection, may have no entry.
func WhyEmpty(ctx context.Context, f *Feeds, person, collection string) (string, error) {
	book, err := f.bookNow(ctx)
	if err != nil {
		return "", err
	}
	const lately = "in the last 31 days"
	if person == "" {
		text := fmt.Sprintf("nothing of %s was posted %s; %s says what is", collection, lately, audience.PostsFile)
		if c := book.Collections[collection]; c != nil && len(c.OptOut) > 0 {
			text += fmt.Sprintf(", and optOut: in %s/%s.yaml what it does not get", audience.CollectionsDir, collection)
		}
		return text, nil
	}
	var in []string
	for _, name := range slices.Sorted(maps.Keys(book.Collections)) {
		if slices.ContainsFunc(book.Collections[name].Members, func(m string) bool { return book.Named(m) == person }) {
			in = append(in, name)
		}
	}
	var text string
	p := book.People[person]
	switch {
	case len(in) == 0 && (p == nil || len(p.Follows) == 0):
		text = fmt.Sprintf("%s posted nothing %s, is no member of a collection in %s/ and follows nobody", person, lately, audience.CollectionsDir)
	case len(in) == 0:
		text = fmt.Sprintf("%s posted nothing %s, nor did those followed (%s), and is no member of a collection", person, lately, strings.Join(p.Follows, ", "))
	default:
		text = fmt.Sprintf("nothing was posted %s by %s, whom they follow, or in their collections: %s", lately, person, strings.Join(in, ", "))
	}
	if p != nil && len(p.OptOut) > 0 {
		text += fmt.Sprintf("; or all of it is in optOut: in %s/%s.yaml", audience.PeopleDir, person)
	}
	return text, nil
}

// refusePrivate refuses a post of a person who wants none.
func refusePrivate(ctx context.Context, f *Feeds, address string) error {
	book, err := f.bookNow(ctx)
	if err != nil {
		return err
	}
	name := book.Named(address)
	if p := book.People[name]; p == nil || !p.Private {
		return ctx.Err()
	}
	return fault.New(fault.Refused, fmt.Sprintf("%s is private in %s/%s.yaml: nothing of theirs is posted", name, audience.PeopleDir, name))
}
