package audience

import (
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"bagpipe/layout"
)

// The folders of the files.
const (
	Dir            = "feeds"
	PeopleDir      = "feeds/people"
	CollectionsDir = "feeds/collections"
	PostsFile      = "feeds/posts.yaml"
)

// Registered is the status of an item that arrives.
const Registered = "registered"

// Activity fits some transitions.
type Activity struct {
	To       []string `yaml:"to"`
	Workflow string   `yaml:"workflow"`
	Step     string   `yaml:"step"`
	By       string   `yaml:"by"` // people, robots; "": both
	As       string   `yaml:"as"`
}

// Control is one opt-out.
type Control struct {
	Collection string `yaml:"collection"`
	App        string `yaml:"app"`
	Type       string `yaml:"type"`
	Poster     string `yaml:"poster"`
}

// Person is one file of feeds/people.
type Person struct {
	Schema    int       `yaml:"schema"`
	Name      string    `yaml:"name"`
	Addresses []string  `yaml:"addresses"`
	Follows   []string  `yaml:"follows"`
	Private   bool      `yaml:"private"`
	OptOut    []Control `yaml:"optOut"`
}

// Collection is one file of feeds/collections.
type Collection struct {
	Schema  int       `yaml:"schema"`
	Members []string  `yaml:"members"`
	OptOut  []Control `yaml:"optOut"`
}

type posts struct {
	Schema     int        `yaml:"schema"`
	Most       int        `yaml:"most"`
	Keep       string     `yaml:"keep"`
	Activities []Activity `yaml:"activities"`
}

// byDefault is what is an activity where nothing is said.
var byDefault = []Activity{{To: []string{Registered, "failed", "hold", "release", "note"}}, {To: []string{"completed", "skipped"}, By: "people"}}

// Book is all of feeds/ at one commit.
type Book struct {
	Activities  []Activity
	Most        int                // activities that get their feeds at a time; 0: all
	Keep        time.Duration      // how long activities are listed that have their feeds
	People      map[string]*Person // by name of the file
	Collections map[string]*Collection
	byAddress   map[string]string
}

// keepListed is how long activities are listed that have their feeds, where nothing is said.
const keepListed = 7 * 24 * time.Hour

// New gives the book of what is said nowhere.
func New() *Book {
	return &Book{Activities: byDefault, Keep: keepListed, People: map[string]*Person{}, Collections: map[string]*Collection{}, byAddress: map[string]string{}}
}

// Check checks one file; its errors are *layout.FileError.
func Check(file string, data []byte) error { return New().Add(file, data) }

// Add takes a file in. Of two people with one address the first, by name, has it.
func (b *Book) Add(file string, data []byte) error {
	name := strings.TrimSuffix(path.Base(file), ".yaml")
	y, err := layout.ParseYAML(file, data)
	if err != nil {
		return err
	}
	switch path.Dir(file) {
	case Dir:
		return b.addPosts(file, y)
	case PeopleDir:
		p := &Person{}
		if err := y.Decode(p); err != nil {
			return err
		}
		if err := checkFile(y, p.Schema, p.OptOut); err != nil {
			return err
		}
		b.People[name] = p
		for _, other := range slices.Backward(slices.Sorted(maps.Keys(b.People))) {
			for _, address := range b.People[other].Addresses {
				b.byAddress[strings.ToLower(address)] = other
			}
		}
	case CollectionsDir:
		c := &Collection{}
		if err := y.Decode(c); err != nil {
			return err
		}
		if err := checkFile(y, c.Schema, c.OptOut); err != nil {
			return err
		}
		b.Collections[name] = c
	}
	return nil
}

func checkFile(y *layout.YAML, schema int, optOut []Control) error {
	if schema != 1 {
		return y.Errorf("$.schema", "expected schema: 1")
	}
	if slices.Contains(optOut, Control{}) {
		return y.Errorf("$.optOut", "expected one of collection, app, type, poster in each; private: true, or no file, says the rest")
	}
	return nil
}

func (b *Book) addPosts(file string, y *layout.YAML) error {
	if file != PostsFile {
		return y.Errorf("$", "expected %s, or a file in %s or %s", PostsFile, PeopleDir, CollectionsDir)
	}
	p := &posts{}
	err := y.Decode(p)
	if err != nil {
		return err
	}
	if p.Schema != 1 {
		return y.Errorf("$.schema", "expected schema: 1")
	}
	for _, a := range p.Activities {
		if a.By != "" && a.By != "people" && a.By != "robots" {
			return y.Errorf("$.activities", "by: expected people or robots")
		}
		if _, err := layout.ParseName(a.As); a.As != "" && err != nil {
			return y.Errorf("$.activities", "as: %v", err)
		}
	}
	if p.Most < 0 {
		return y.Errorf("$.most", "expected a number from 1 up")
	}
	b.Activities, b.Most, b.Keep = p.Activities, p.Most, keepListed
	if p.Keep != "" {
		if b.Keep, err = layout.ParseDuration(p.Keep); err != nil {
			return y.Errorf("$.keep", "%v", err)
		}
	}
	if p.Activities == nil {
		b.Activities = byDefault
	}
	return nil
}

// Named gives the name of the person of an address, and the address itself where nobody
// has it.
func (b *Book) Named(address string) string {
	if name := b.byAddress[strings.ToLower(address)]; name != "" {
		return name
	}
	return strings.ToLower(address)
}

// Fits gives the last word of the type of a transition that is an activity.
func (b *Book) Fits(workflow, step, to string, byPerson bool) (word string, ok bool) {
	for _, a := range b.Activities {
		if len(a.To) > 0 && !slices.Contains(a.To, to) || a.Workflow != "" && a.Workflow != workflow || a.Step != "" && a.Step != step ||
			a.By == "people" && !byPerson || a.By == "robots" && byPerson {
			continue
		}
		if a.As != "" {
			return a.As, true
		}
		return to, true
	}
	return "", false
}

// Post is what recipients are chosen by.
type Post struct{ Poster, Collection, App, Type string }

// Recipients names the feeds that have a post, in order: person/NAME of the collection's
// members, the poster, and the poster's followers who see the collection, and
// collection/NAME; each less those that opted out. Nothing of a private person's has any.
func (b *Book) Recipients(p Post) (feeds []string) {
	if poster := b.People[p.Poster]; poster != nil && poster.Private {
		return nil
	}
	c := b.Collections[p.Collection]
	to := map[string]bool{p.Poster: p.Poster != ""}
	if c != nil {
		for _, m := range c.Members {
			to[b.Named(m)] = true
		}
	}
	for name, person := range b.People {
		follows := slices.ContainsFunc(person.Follows, func(f string) bool { return b.Named(f) == p.Poster })
		if follows && (c == nil || len(c.Members) == 0 || to[name]) {
			to[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(to)) {
		if person := b.People[name]; to[name] && (person == nil || !b.out(person.OptOut, p)) {
			feeds = append(feeds, "person/"+name)
		}
	}
	if p.Collection != "" && (c == nil || !b.out(c.OptOut, p)) {
		feeds = append(feeds, "collection/"+p.Collection)
	}
	return feeds
}

func (b *Book) out(controls []Control, p Post) bool {
	return slices.ContainsFunc(controls, func(c Control) bool {
		return (c.Collection == "" || c.Collection == p.Collection) && (c.App == "" || c.App == p.App) &&
			(c.Type == "" || c.Type == p.Type) && (c.Poster == "" || b.Named(c.Poster) == p.Poster)
	})
}
