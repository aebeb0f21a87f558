package feed

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"bagpipe/engine/audience"
	"bagpipe/engine/fault"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/state"
	"bagpipe/layout"
)

// Post is one activity.
type Post struct {
	Seq        int            `json:"seq"`
	ID         string         `json:"id"` // the commit
	Poster     string         `json:"poster"`
	Collection string         `json:"collection,omitempty"`
	App        string         `json:"app,omitempty"`
	Date       time.Time      `json:"date"`
	Type       string         `json:"type"`
	Data       map[string]any `json:"data"`
	Part       int            `json:"part"`
	To         []string       `json:"to"` // the feeds that have it, by what was in force at its commit
}

// The trailer of a commit that is a post of a person's or program's, and where those stand.
const (
	postTrailer = "Bagpipe-Post"
	postsDir    = "posts"
	maxData     = 16 << 10
)

// posted is the file of such a post.
type posted struct {
	Schema     int            `json:"schema"`
	Type       string         `json:"type"`
	Collection layout.Name    `json:"collection"`
	App        string         `json:"app,omitempty"`
	Data       map[string]any `json:"data"`
	By         string         `json:"by"`
}

// CheckType refuses a type that is no words with dots between.
func CheckType(t string) error {
	words := strings.Split(t, ".")
	for _, w := range words {
		if _, err := layout.ParseName(w); err != nil {
			return fault.New(fault.Invalid, fmt.Sprintf("type %q: expected words with dots between, as in org.museum.loan: %v", t, err))
		}
	}
	if len(words) < 2 {
		return fault.New(fault.Invalid, fmt.Sprintf("type %q: expected at least two words, as in museum.loan", t))
	}
	return nil
}

// Post commits a post of the acting person; fault.Refused where the person is private.
func (f *Feeds) Post(ctx context.Context, kind string, collection layout.Name, app string, data map[string]any) error {
	if err := CheckType(kind); err != nil {
		return err
	}
	who := f.ledger.ByPerson()
	if err := refusePrivate(ctx, f, who.Author.Email); err != nil {
		return err
	}
	file, err := layout.EncodeJSON(posted{Schema: 1, Type: kind, Collection: collection, App: app, Data: data, By: who.Agent})
	if err != nil {
		return err
	}
	if len(file) > maxData {
		return fault.New(fault.Invalid, fmt.Sprintf("the post has %d bytes, more than %d", len(file), maxData))
	}
	key, err := f.ledger.IntentKey()
	if err != nil {
		return err
	}
	name := f.ledger.Now().Format(postsDir+"/2006/01/") + string(key)
	_, err = f.ledger.Store.Commit(ctx, func(gitstore.Reader) (*gitstore.Change, error) {
		return &gitstore.Change{Files: map[string][]byte{name + ".json": file}, Author: who.Author,
			Message: who.Sign(ledger.Message("post: "+kind, "", []ledger.Trailer{{postTrailer, name}, {"Bagpipe-Agent", who.Agent}}))}, nil
	})
	return err
}

// postOf makes a post of a commit, and gives the book that was in force; nil: it is no activity.
func (f *Feeds) postOf(ctx context.Context, v gitstore.View, c gitstore.Commit) (*Post, *audience.Book, error) {
	if f.ledger.Now().Sub(c.When) > keep {
		return nil, nil, nil
	}
	said := map[string]string{}
	for _, t := range c.Trailers {
		said[t.Key] = t.Value
	}
	if said[postTrailer] == "" && said["Bagpipe-Item"] == "" {
		return nil, nil, nil
	}
	book, err := f.bookAt(ctx, v)
	if err != nil {
		return nil, nil, err
	}
	p := &Post{ID: c.Hash.String(), Date: c.When.UTC(), Poster: book.Named(strings.TrimSpace(c.Author.Email))}
	if said[postTrailer] != "" {
		if err = p.ofFile(v, said[postTrailer]); p.Data != nil {
			p.Data["person"] = personOf(p, c, book)
		}
	} else if p = p.ofTransition(book, said); p != nil {
		err = p.lookUp(f.ledger, v, c, layout.ItemID(said["Bagpipe-Item"]), book)
	}
	if err != nil || p == nil || p.Type == "" {
		return nil, nil, err
	}
	return p, book, nil
}

// ofFile is what a person or a program posted. A file that is none is no post.
func (p *Post) ofFile(v gitstore.View, name string) error {
	data, err := v.ReadFile(name + ".json")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var was posted
	if len(data) > maxData || json.Unmarshal(data, &was) != nil || CheckType(was.Type) != nil {
		return nil
	}
	p.Type, p.Collection, p.App, p.Data = was.Type, string(was.Collection), was.App, was.Data
	if p.Data == nil {
		p.Data = map[string]any{}
	}
	return nil
}

// ofTransition is what a commit says by its trailers; nil: nothing that concerns anybody.
func (p *Post) ofTransition(book *audience.Book, said map[string]string) *Post {
	to, step := said["Bagpipe-To"], said["Bagpipe-Step"]
	app, _ := state.Numbered(said["Bagpipe-Workflow"])
	switch {
	case said["Bagpipe-Intent"] != "" && step == "":
		to = said["Bagpipe-Intent"]
	case step == "":
		return nil
	case said["Bagpipe-Source"] != "" && to == string(state.Completed):
		to = audience.Registered
	}
	word, fits := book.Fits(app, step, to, strings.Contains(said["Bagpipe-Agent"], "<"))
	if !fits {
		return nil
	}
	if p.App = app; app == "" {
		app = "item"
	}
	p.Type = "bagpipe." + app + "." + word
	p.Data = map[string]any{"item": said["Bagpipe-Item"], "to": to}
	for key, value := range map[string]string{"step": step, "workflow": said["Bagpipe-Workflow"], "agent": said["Bagpipe-Agent"]} {
		if value != "" {
			p.Data[key] = value
		}
	}
	return p
}

// personOf is the poster's name: that of feeds/people, else the commit's.
func personOf(p *Post, c gitstore.Commit, book *audience.Book) string {
	if person := book.People[p.Poster]; person != nil && person.Name != "" {
		return person.Name
	}
	return cmp.Or(c.Author.Name, p.Poster)
}

// lookUp completes a post from the item's records as of its commit.
func (p *Post) lookUp(l *ledger.Ledger, v gitstore.View, c gitstore.Commit, id layout.ItemID, book *audience.Book) error {
	p.Data["person"] = personOf(p, c, book)
	if text := strings.TrimSpace(c.Body); text != "" {
		p.Data["message"] = ledger.OneLine(text, 500)
	}
	if _, err := layout.ParseItemID(string(id)); err != nil {
		return nil // a trailer of somebody's
	}
	data, err := v.ReadFile(layout.ItemDir(id) + "/" + layout.ManifestJSON)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	m, err := layout.DecodeManifest(data)
	if err != nil {
		return nil // the guard tells of it
	}
	p.Collection, p.Data["label"] = string(m.Collection), ledger.OneLine(m.Label, 200)
	if m.Parent != nil {
		p.Data["parent"] = string(m.Parent.Item)
	}
	thumbnail, err := thumbnailAt(l, v, id)
	if thumbnail != "" {
		p.Data["thumbnail"] = thumbnail
	}
	return err
}

// viewsRobot is what draws thumb.jpg.
const viewsRobot = "views"

// thumbnailAt is the small picture that a step has made by a commit, below the item's folder;
// "": none.
func thumbnailAt(l *ledger.Ledger, v gitstore.View, id layout.ItemID) (string, error) {
	data, err := v.ReadFile(layout.ItemDir(id) + "/" + layout.ExecutionJSON)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	x, err := state.Decode(data)
	if err != nil {
		return "", nil // the guard tells of it
	}
	for _, name := range slices.Backward(x.Names()) {
		w := x.Workflows[name]
		plan, err := l.PinnedPlan(v, w.Digest)
		if err != nil {
			continue // the guard tells of it, too
		}
		for i := range plan.Steps {
			step := &plan.Steps[i]
			s := w.Steps[layout.Name(step.Name)]
			if step.Robot != viewsRobot || s == nil {
				continue
			}
			if _, a, ok := s.Current(); ok && a.State == state.Completed {
				return layout.DerivedDir + "/" + step.Name + "/thumb.jpg", nil
			}
		}
	}
	return "", nil
}

// bookAt reads feeds/ as it was at a commit. A file that was broken then, such as one in which two sites'
// versions stand between Git's marks, is as it last could be read: a private person stays one.
func (f *Feeds) bookAt(ctx context.Context, v gitstore.View) (*audience.Book, error) {
	at, err := v.TreeOf(audience.Dir)
	if err != nil {
		return nil, err
	}
	if b, is := f.books.Load(at); is {
		return b.(*audience.Book), nil
	}
	b := audience.New()
	for _, dir := range []string{audience.Dir, audience.PeopleDir, audience.CollectionsDir} {
		entries, err := v.List(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, e := range entries {
			if e.IsDir || !strings.HasSuffix(e.Name, ".yaml") {
				continue
			}
			data, err := v.ReadFile(dir + "/" + e.Name)
			if err != nil {
				return nil, err
			}
			if err := b.Add(dir+"/"+e.Name, data); err != nil {
				f.ledger.Log.Warn("a file of the feeds is read as it was before", "err", err)
				if err := addBefore(ctx, f, b, v, dir+"/"+e.Name); err != nil {
					return nil, err
				}
			}
		}
	}
	known, _ := f.books.LoadOrStore(at, b)
	return known.(*audience.Book), nil
}

// addBefore adds a file of feeds/ in the newest version that can be read, if one can.
func addBefore(ctx context.Context, f *Feeds, b *audience.Book, v gitstore.View, file string) error {
	for c, err := range f.ledger.Store.History(ctx, gitstore.HistoryOptions{Path: file, From: v.Commit()}) {
		if err != nil {
			return err
		}
		at, err := f.ledger.Store.At(c.Hash)
		if err != nil {
			return err
		}
		data, err := at.ReadFile(file)
		if err == nil && b.Add(file, data) == nil {
			return nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
