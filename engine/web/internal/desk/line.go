package desk

import (
	"strings"
	"time"

	"bagpipe/engine/gitstore"
)

// Line is one commit.
type Line struct {
	Commit   string            `json:"commit"`
	Time     time.Time         `json:"time"`
	Author   string            `json:"author"`
	Subject  string            `json:"subject"`
	Text     string            `json:"text,omitempty"`
	Trailers map[string]string `json:"trailers"`
}

// LineOf is a commit as calls and pages show it.
func LineOf(c gitstore.Commit) Line {
	line := Line{Commit: c.Hash.String(), Time: c.When.UTC(), Author: c.Author.Name + " <" + c.Author.Email + ">",
		Subject: c.Subject, Text: strings.TrimSpace(c.Body), Trailers: map[string]string{}}
	for _, t := range c.Trailers {
		line.Trailers[t.Key] = t.Value
	}
	return line
}
