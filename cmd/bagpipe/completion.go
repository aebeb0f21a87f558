package main

import (
	"fmt"
	"os"
	"path/filepath"
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

type manCmd struct {
	To string `type:"path" placeholder:"DIR" writes:"" help:"Write it there, and a page of each command (bagpipe-run.1), as files."`
}

// Run prints the manual page, or writes all pages.
func (c *manCmd) Run(k *kong.Kong, a *app) error {
	program := described(k.Model.Node)
	program.Help, _, _ = strings.Cut(program.Help, "\n\n") // the exit codes have a section of their own
	codes := strings.TrimPrefix(screen.CodesHelp, "Exit codes:\n")
	if c.To == "" {
		_, err := fmt.Fprint(a.Out, manual.Page(program, version, codes))
		return err
	}
	if err := os.MkdirAll(c.To, 0o777); err != nil {
		return err
	}
	for name, text := range manual.Pages(program, version, codes) {
		if err := os.WriteFile(filepath.Join(c.To, name), []byte(text), 0o666); err != nil {
			return err
		}
	}
	return nil
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
