package main

import (
	"cmp"
	"reflect"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/alecthomas/kong"
)

// Arguments and options that name a place to write to say so: what they name is kept out of the roots of catalogs.
func TestPlacesToWriteTo(t *testing.T) {
	parser, err := kong.New(&cli{}, kong.Name("bagpipe"), kong.TypeMapper(reflect.TypeFor[time.Time](), kong.MapperFunc(decodeTime)))
	if err != nil {
		t.Fatal(err)
	}
	writing := regexp.MustCompile(`(?i)\b(writes?|wrote|makes?|made|replaced|run it in)\b`)
	named := regexp.MustCompile(`^(DIR|FILE|PATH|PLACE|dir|dest|to|file|archive)$`)
	reads := []string{"broker key", "worker key", "use file"} // which were written before, by a command or another program
	n := 0
	var visit func(node *kong.Node)
	visit = func(node *kong.Node) {
		for _, v := range slices.Concat(node.Positional, flagValues(node.Flags)) {
			if v.Tag.Has("writes") {
				n++
				if with := v.Tag.Get("writes"); with != "" && !slices.ContainsFunc(node.Flags, func(f *kong.Flag) bool { return f.Name == with && f.IsBool() }) {
					t.Errorf("%s %s: no option --%s", node.Path(), v.Name, with)
				}
				continue
			}
			place := cmp.Or(v.Tag.PlaceHolder, v.Name)
			if named.MatchString(place) && writing.MatchString(v.Help) && !slices.Contains(reads, node.Name+" "+v.Name) {
				t.Errorf("%s %s (%s): it seems to be written to, and has no tag writes", node.Path(), v.Name, v.Help)
			}
		}
		for _, child := range node.Children {
			visit(child)
		}
	}
	visit(parser.Model.Node)
	if n < 25 {
		t.Errorf("%d places to write to", n)
	}
}
