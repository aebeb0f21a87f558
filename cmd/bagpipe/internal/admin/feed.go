package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/engine"
	"bagpipe/engine/fault"
	"bagpipe/engine/feed"
	"bagpipe/layout"
)

// Feed shows activity feeds and posts to them.
type Feed struct {
	Show       feedShow       `cmd:"" help:"Show the feed of a person or a collection."`
	Write      feedWrite      `cmd:"" help:"Write all feeds to a folder, as Atom and JSON files."`
	Posts      feedPosts      `cmd:"" help:"List the posts that the feeds are made of."`
	Post       feedPost       `cmd:"" help:"Post an activity of your own."`
	Regenerate feedRegenerate `cmd:"" help:"Make all feeds anew from the history."`
}

type feedShow struct {
	Person     string `placeholder:"NAME" help:"The feed of this person: the name in feeds/people, or an address." xor:"of" required:""`
	Collection string `placeholder:"NAME" help:"The feed of this collection." xor:"of" required:""`
	Format     string `enum:"text,html,atom,json" default:"text" help:"text, html, atom or json."`
	Limit      int    `placeholder:"N" default:"50" help:"At most so many entries, the newest; 200 are kept."`
}

// Run shows one feed.
func (c *feedShow) Run(ctx context.Context, on *screen.Screen, open Open) error {
	return open.plain(ctx, func(e *engine.Engine) error {
		if err := e.Feed.Cycle(ctx); err != nil {
			return err
		}
		name := "collection/" + c.Collection
		if c.Person != "" {
			name = "person/" + c.Person
		}
		rows, err := e.Feed.Show(ctx, name, c.Limit)
		if err != nil {
			return err
		}
		if len(rows) == 0 && c.Person != "" {
			if err := e.Feed.CheckPerson(ctx, c.Person); err != nil {
				return err
			}
		}
		if len(rows) == 0 && c.Person == "" {
			if err := e.Settings.CheckCollection(layout.Name(c.Collection)); err != nil {
				return err
			}
		}
		switch c.Format {
		case "atom":
			return feed.WriteAtom(on.Out, name, rows, e.Ledger.Now())
		case "json":
			if rows == nil {
				rows = []feed.Row{}
			}
			return on.JSON(rows)
		}
		if len(rows) == 0 {
			why, err := feed.WhyEmpty(ctx, e.Feed, c.Person, c.Collection)
			if err != nil {
				return err
			}
			on.Talk("nothing in %s: %s", name, why)
		}
		for n := range rows {
			if c.Format == "html" {
				fmt.Fprintf(on.Out, "<li>%s</li>\n", rows[n].Text("html"))
				continue
			}
			fmt.Fprintf(on.Out, "%s  %s\n", screen.When(rows[n].Date), rows[n].Text("text"))
		}
		return nil
	})
}

type feedWrite struct {
	Dir string `arg:"" writes:"" help:"The folder; files that are there are replaced."`
}

// Run writes DIR/person/NAME.atom, DIR/collection/NAME.atom, and each as .json.
func (c *feedWrite) Run(ctx context.Context, on *screen.Screen, open Open) error {
	return open.plain(ctx, func(e *engine.Engine) error {
		if err := e.Feed.Cycle(ctx); err != nil {
			return err
		}
		n, err := e.Feed.WriteAll(ctx, c.Dir)
		if err != nil {
			return err
		}
		on.Talk("%s written to %s", screen.Count(n, "feed"), c.Dir)
		return nil
	})
}

type feedPosts struct {
	Status string `placeholder:"STATUS" enum:",pending,posted,processed,error" default:"" help:"pending, posted, processed or error."`
	JSON   bool   `name:"json" help:"Print JSON."`
}

// Run lists posts.
func (c *feedPosts) Run(ctx context.Context, on *screen.Screen, open Open) error {
	return open.plain(ctx, func(e *engine.Engine) error {
		if err := e.Feed.Cycle(ctx); err != nil {
			return err
		}
		all, err := e.Feed.Posts(ctx)
		if err != nil {
			return err
		}
		rows := []feed.PostRow{}
		for _, r := range all {
			if c.Status == "" || r.Status == c.Status {
				rows = append(rows, r)
			}
		}
		if c.JSON {
			return on.JSON(rows)
		}
		t := screen.NewTable("post", "date", "type", "by", "collection", "status", "feeds", "why")
		for _, r := range rows {
			number := fmt.Sprint(r.Seq)
			if r.Seq == 0 {
				number = r.ID[:12]
			}
			t.Row(number, screen.When(r.Date), r.Type, r.Poster, r.Collection, r.Status, fmt.Sprint(len(r.To)), r.Reason)
		}
		return t.Print(on.Out)
	})
}

type feedPost struct {
	Type       string `arg:"" help:"Words with dots between, as in museum.loan."`
	Collection string `required:"" placeholder:"NAME" help:"The collection it is about."`
	App        string `placeholder:"NAME" help:"The tool that posts."`
	Data       string `default:"{}" placeholder:"JSON" help:"An object: the data that templates are filled with, as in '{\"title\": \"Three maps lent\"}'."`
}

// wrongAt says which character of a JSON text is wrong, if one is.
func wrongAt(err error) string {
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return ""
	}
	return fmt.Sprintf("; it is wrong at character %d", syntax.Offset)
}

// Run posts.
func (c *feedPost) Run(ctx context.Context, on *screen.Screen, open Open) error {
	name, err := layout.ParseName(c.Collection)
	if err != nil {
		return err
	}
	var data map[string]any
	if err := json.Unmarshal([]byte(c.Data), &data); err != nil || data == nil {
		return fault.New(fault.Invalid, `--data: expected a JSON object such as {"title": "Three maps lent"}`+wrongAt(err))
	}
	return open.plain(ctx, func(e *engine.Engine) error {
		if err := e.Settings.CheckCollection(name); err != nil {
			return err
		}
		return told(e.Feed.Post(ctx, c.Type, name, c.App, data), on, "%s: posted, of %s", c.Type, name)
	})
}

type feedRegenerate struct{}

// Run makes them anew.
func (c *feedRegenerate) Run(ctx context.Context, on *screen.Screen, open Open) error {
	return open.plain(ctx, func(e *engine.Engine) error {
		if err := e.Feed.Regenerate(ctx); err != nil {
			return err
		}
		feeds, posts := e.Feed.Count()
		on.Talk("%s made of %s", screen.Count(feeds, "feed"), screen.Count(posts, "post"))
		return nil
	})
}
