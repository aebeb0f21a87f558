package main

import (
	"fmt"
	"strings"

	"bagpipe/cmd/bagpipe/internal/manual"
	"bagpipe/cmd/bagpipe/internal/screen"

	"github.com/alecthomas/kong"
)

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Run prints a script for the shell to read.
func (c *completionCmd) Run(k *kong.Kong, a *app) error {
	text, err := manual.Completion(described(k.Model.Node), c.Shell)
	if err == nil {
		_, err = fmt.Fprint(a.Out, text)
	}
	return err
}

type manCmd struct{}

// Run prints the manual page.
func (c *manCmd) Run(k *kong.Kong, a *app) error {
	program := described(k.Model.Node)
	program.Help, _, _ = strings.Cut(program.Help, "\n\n") // the exit codes have a section of their own
	_, err := fmt.Fprint(a.Out, manual.Page(program, version, strings.TrimPrefix(screen.CodesHelp, "Exit codes:\n")))
	return err
}

// described is what the grammar says of a command and those below it.
func described(n *kong.Node) manual.Command {
	c := manual.Command{Name: n.Name, Help: n.Help}
	if n.Parent != nil {
		c.Path = strings.TrimSpace(strings.TrimPrefix(n.Path(), "bagpipe"))
		c.Path, _, _ = strings.Cut(c.Path, " <")
	}
	var args []string
	for _, p := range n.Positional {
		args = append(args, p.Summary())
	}
	c.Args = strings.Join(args, " ")
	for _, f := range n.Flags {
		if f.Hidden {
			continue
		}
		flag := manual.Flag{Name: f.Name, Help: f.Help}
		if f.Short != 0 {
			flag.Short = string(f.Short)
		}
		if !f.IsBool() && !f.IsCounter() {
			flag.Value = f.FormatPlaceHolder()
		}
		for _, v := range f.EnumSlice() {
			if v != "" {
				flag.Enum = append(flag.Enum, v)
			}
		}
		c.Flags = append(c.Flags, flag)
	}
	for _, child := range n.Children {
		if !child.Hidden && child.Type == kong.CommandNode {
			c.Below = append(c.Below, described(child))
		}
	}
	return c
}
