package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/engine"
	"bagpipe/engine/gitstore"
	"bagpipe/layout"
)

type logCmd struct {
	Item  string `arg:"" optional:"" help:"Identifier, the beginning of one, or label; default: all items."`
	Limit int    `short:"n" help:"At most so many; default: 100 without an item, all with one."`
	JSON  bool   `name:"json" help:"One JSON object a line."`
}

// logLine is one commit.
type logLine struct {
	Commit   string            `json:"commit"`
	Time     time.Time         `json:"time"`
	Author   string            `json:"author"`
	Subject  string            `json:"subject"`
	Text     string            `json:"text,omitempty"`
	Trailers map[string]string `json:"trailers"`
}

func (c *logCmd) Run(ctx context.Context, a *app) error {
	return a.with(ctx, func(e *engine.Engine) error {
		var id layout.ItemID
		limit := c.Limit
		if c.Item != "" {
			var err error
			if id, err = e.Ask.Resolve(ctx, c.Item); err != nil {
				return err
			}
		} else if limit == 0 {
			limit = 100
		}
		for l, err := range e.Ask.History(ctx, id, limit) {
			if err != nil {
				return err
			}
			if err := c.print(a, l); err != nil {
				return err
			}
		}
		return nil
	})
}

func (c *logCmd) print(a *app, l gitstore.Commit) error {
	if c.JSON {
		line := logLine{Commit: l.Hash.String(), Time: l.When.UTC(), Author: l.Author.Name + " <" + l.Author.Email + ">",
			Subject: l.Subject, Text: strings.TrimSpace(l.Body), Trailers: map[string]string{}}
		for _, t := range l.Trailers {
			line.Trailers[t.Key] = t.Value
		}
		out := json.NewEncoder(a.Out)
		out.SetEscapeHTML(false)
		return out.Encode(line)
	}
	text := strings.TrimSpace(l.Body)
	if screen.Narrow(a.Out) {
		fmt.Fprintf(a.Out, "%s  %s  [%s]\n", l.Hash.String()[:10], screen.When(l.When), l.Author.Name)
		return screen.Below(a.Out, screen.Local(l.Subject+"\n"+text))
	}
	fmt.Fprintf(a.Out, "%s  %s  %s  [%s]\n", l.Hash.String()[:10], screen.When(l.When), screen.Local(l.Subject), l.Author.Name)
	for line := range strings.Lines(text) {
		fmt.Fprintf(a.Out, "                                   %s\n", screen.Local(strings.TrimSpace(line)))
	}
	return nil
}
