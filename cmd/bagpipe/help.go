package main

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"bagpipe/cmd/bagpipe/internal/screen"
	"bagpipe/layout"

	"github.com/alecthomas/kong"
)

type helpCmd struct {
	Command []string `arg:"" optional:"" help:"The command, as in: bagpipe help step retry."`
}

// Run prints what --help prints.
func (c *helpCmd) Run(k *kong.Kong, a *app) error {
	ctx, err := kong.Trace(k, c.Command)
	if err == nil && ctx.Error != nil {
		a.Talk("%s", usage(ctx, ctx.Error))
		return screen.ExitUsage
	}
	if err != nil {
		return err
	}
	return ctx.PrintUsage(false)
}

// printHelp is the help of kong; that of the program names each command on one line, under
// the title of its group.
func printHelp(o kong.HelpOptions, ctx *kong.Context) error {
	if ctx.Selected() == nil {
		o.NoExpandSubcommands = true
		for _, f := range reflect.VisibleFields(reflect.TypeFor[cli]()) {
			for _, node := range ctx.Model.Children {
				if _, is := f.Tag.Lookup("cmd"); is && strings.EqualFold(f.Name, strings.ReplaceAll(node.Name, "-", "")) {
					title := reflect.TypeFor[cli]().Field(f.Index[0]).Tag.Get("title")
					node.Group = &kong.Group{Key: title, Title: title}
				}
			}
		}
	}
	return kong.DefaultHelpPrinter(o, ctx)
}

type versionCmd struct{}

func (c *versionCmd) Run(a *app) error {
	_, err := fmt.Fprintln(a.Out, version)
	return err
}

// usage words a usage error, and names the help of the command it is about.
func usage(ctx *kong.Context, err error) string {
	command, hint := "bagpipe", ""
	text := err.Error()
	node := ctx.Model.Node
	if selected := ctx.Selected(); selected != nil {
		node = selected
		if p := node.Parent; p != nil && p.DefaultCmd == node && len(node.Positional) == 0 { // was not asked for by name
			node = p
		}
		command, _, _ = strings.Cut(node.FullPath(), " <")
	}
	word, isWord := strings.CutPrefix(text, "unexpected argument ")
	word, _, _ = strings.Cut(word, ",")
	switch n := len(node.Positional); {
	case isWord && len(node.Children) > 0:
		text = fmt.Sprintf("no command %q", strings.TrimSpace(strings.TrimPrefix(command, "bagpipe")+" "+word))
		if near := nearCommands(node, word); len(near) > 0 {
			hint = "; perhaps: " + strings.Join(near, ", ")
		}
	case isWord && n > 0 && node.Positional[n-1].IsSlice(): // after a list, only an option can have ended it
		hint = ": options stand before or after the arguments, not between them"
	}
	if near := misnamed(ctx); len(near) > 0 && hint == "" {
		hint = "; perhaps: " + strings.Join(near, ", ")
	}
	text, _, _ = strings.Cut(text, "; perhaps try --") // an option's value in the place of another's
	text = regexp.MustCompile(`expected \w+ value but got "EOL" \(<EOL>\)$`).ReplaceAllString(text, "expected a value after it")
	text = regexp.MustCompile(`expected int value but got ("[^"]*") \(short flag\)$`).ReplaceAllString(text, "expected a whole number, not $1")
	text = regexp.MustCompile(`expected \w+ value but got ("[^"]*") \((short|long) flag\)$`).ReplaceAllString(text, "expected a value after it, not the option $1")
	text = regexp.MustCompile(`expected a valid \d+ bit u?int but got ("[^"]*")$`).ReplaceAllString(text, "expected a whole number, not $1")
	text = regexp.MustCompile(`^expected "<(\w+)>.*"$`).ReplaceAllStringFunc(text, func(lacks string) string {
		name, _, _ := strings.Cut(strings.TrimPrefix(lacks, `expected "<`), ">")
		return "expected " + strings.ToUpper(name)
	})
	text = strings.Replace(text, `expected "<key>=<value>" but got `, "expected KEY=VALUE, not ", 1)
	// An option that may be absent has the empty text among its values; nobody writes it.
	text = strings.Replace(text, `must be one of "",`, "must be one of ", 1)
	return fmt.Sprintf("bagpipe: %s%s\nTry: %s --help", text, hint, command)
}

// misnamed are the commands that somebody may mean by a word that was taken for an argument of the one that
// stands for a group, as in catalog scann.
func misnamed(ctx *kong.Context) (near []string) {
	node := ctx.Selected()
	if node == nil || node.Parent == nil || node.Parent.DefaultCmd != node || len(node.Positional) == 0 || slices.Contains(ctx.Args, node.Name) {
		return nil
	}
	at := slices.Index(ctx.Args, node.Parent.Name) + 1
	if at == 0 || at == len(ctx.Args) || strings.HasPrefix(ctx.Args[at], "-") {
		return nil
	}
	return slices.DeleteFunc(nearCommands(node.Parent, ctx.Args[at]), func(full string) bool { return !strings.HasPrefix(full, node.Parent.Name+" ") })
}

// lookedFor are words of other programs for what a command of this one does.
var lookedFor = map[string][]string{
	"ls": {"items"}, "list": {"items"}, "find": {"search"}, "get": {"retrieve"}, "export": {"retrieve"}, "download": {"retrieve"}, "approve": {"step complete"}, "reject": {"step fail"},
	"ingest": {"add"}, "import": {"add"}, "watch": {"run --watch"}, "history": {"log"}, "info": {"show"}, "next": {"queue"},
	"resume": {"run"}, "reset": {"step reset"}, "pause": {"hold"}, "verify": {"fixity run"}, "gc": {"maintain"}, "errors": {"failures"},
	"delete": {"dispose propose"}, "remove": {"dispose propose"}, "rm": {"dispose propose"}, "withdraw": {"dispose propose"}, "deaccession": {"dispose propose"}, "purge": {"dispose propose"},
	"undo": {"step reset"}, "redo": {"step reset"}, "report": {"items --columns"}, "csv": {"items --columns"}, "tasks": {"queue"}, "jobs": {"queue"}, "health": {"doctor"}, "diagnose": {"doctor"}, "config": {"check"}, "settings": {"check"},
}

// nearCommands are the commands that somebody may mean by a word that is none of node's.
func nearCommands(node *kong.Node, word string) (near []string) {
	if node.Parent == nil {
		near = slices.Clone(lookedFor[word])
	}
	var visit func(n *kong.Node, path string)
	visit = func(n *kong.Node, path string) {
		for _, child := range n.Children {
			if child.Hidden || child.Type != kong.CommandNode {
				continue
			}
			full := strings.TrimSpace(path + " " + child.Name)
			if child.Name == word || len(word) > 2 && strings.HasPrefix(child.Name, word) || layout.Distance(child.Name, word) <= len(word)/3 {
				near = append(near, full)
			}
			visit(child, full)
		}
	}
	visit(node, strings.TrimPrefix(strings.TrimPrefix(node.Path(), "bagpipe"), " "))
	if len(near) == 0 && node.Parent != nil {
		if near = nearCommands(node.Parent, word); len(near) > 3 {
			return nil // so many have it that it tells nothing
		}
		return near
	}
	slices.SortStableFunc(near, func(a, b string) int { return cmp.Compare(strings.Count(a, " "), strings.Count(b, " ")) })
	return slices.Compact(near)
}
