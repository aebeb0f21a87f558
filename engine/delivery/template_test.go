package delivery

import (
	"errors"
	"strconv"
	"strings"
	"testing"
)

// What a template prints is there, or the item is not delivered; what a template asks for first may be wanting.
func TestTemplatesPrintNothingThatIsNotThere(t *testing.T) {
	values := map[string]any{"version": float64(2), "metadata": map[string]any{"title": "Flood plain", "none": nil, "zero": float64(0), "list": []any{"a", nil}}}
	for text, want := range map[string]string{
		"{{.metadata.title}} v{{.version}}":                             "Flood plain v2",
		"{{.metadata.zero}}":                                            "0",
		"{{json .metadata.list}}{{len .metadata.list}}":                 "[\"a\",null]2",
		"{{with .metadata.year}}{{json .}}{{else}}null{{end}}":          "null",
		"{{with .metadata.year}}{{.}}{{else}}undated{{end}}":            "undated",
		"{{if .metadata.year}}{{.metadata.year}}{{end}}":                "",
		"{{or .metadata.year .metadata.title}}":                         "Flood plain",
		"{{$y := .metadata.year}}{{if $y}}{{$y}}{{end}}":                "",
		"{{define \"x\"}}{{.title}}{{end}}{{template \"x\" .metadata}}": "Flood plain",
	} {
		if out, err := fill("card.txt.tmpl", text, values); err != nil || string(out) != want {
			t.Errorf("%s: %q, %v, want %q", text, out, err, want)
		}
	}
	for text, want := range map[string]string{
		"{{.metadata.title}} {{.metadata.year}}":                       ".metadata.year",
		"{{.metadata.none}}":                                           ".metadata.none",
		"{{.metadata.rights.holder}}":                                  ".metadata.rights.holder",
		"{{with .metadata.rights.holder}}{{.}}{{end}}":                 ".metadata.rights.holder",
		"{{json .metadata.none}}":                                      "json .metadata.none",
		"{{.nonsense | json}}":                                         ".nonsense | json",
		"{{if .metadata.title}}{{.metadata.year}}{{end}}":              ".metadata.year",
		"{{range .metadata.list}}{{.}}{{end}}":                         ".",
		"{{or .metadata.year .metadata.place}}":                        "or .metadata.year .metadata.place",
		"{{$y := .metadata.year}}{{$y}}":                               "$y",
		"{{define \"x\"}}{{.year}}{{end}}{{template \"x\" .metadata}}": ".year",
	} {
		out, err := fill("card.txt.tmpl", text, values)
		var lacks *lacking
		if !errors.As(err, &lacks) || lacks.value != want || err == nil {
			t.Errorf("%s: %q, %v, want an error that names %s", text, out, err, want)
		}
	}
}

// A template that takes all memory, or never ends, is refused with what it does; one of many files is not.
func TestTemplatesEnd(t *testing.T) {
	files := map[string]any{}
	for i := range 20000 {
		files[strconv.Itoa(i)] = map[string]any{"size": float64(i)}
	}
	values := map[string]any{"files": files, "key": strings.Repeat("k", 40)}
	for text, want := range map[string]string{
		`{{range 300000000}}xxxxxxxxxxxxxxxxxxxx{{end}}`:                                                                        "makes more than 16 MiB of text",
		`{{range 300000000}}{{end}}`:                                                                                            "turns",
		`{{range 300000}}{{range 300000}}{{end}}{{end}}`:                                                                        "turns",
		`{{$x := "ab"}}{{range 40}}{{$x = printf "%s%s" $x $x}}{{end}}`:                                                         "MiB of text",
		`{{$x := "ab"}}{{range 40}}{{$x = print $x $x}}{{end}}`:                                                                 "MiB of text",
		`{{define "x"}}{{if .}}{{template "x" (slice . 1)}}{{template "x" (slice . 1)}}{{end}}{{end}}{{template "x" .key}}`:     "turns",
		`{{range 20000}}{{if true}}{{$x := 1}}{{end}}{{range 1}}{{$x := 1}}{{range 1}}{{else}}{{$x := 1}}{{end}}{{end}}{{end}}`: "",
	} {
		_, err := fill("card.txt.tmpl", text, values)
		var much *tooMuch
		if want == "" && err != nil || want != "" && (!errors.As(err, &much) || !strings.HasPrefix(err.Error(), "template card.txt.tmpl ") || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	out, err := fill("card.txt.tmpl", `{{range $name, $f := .files}}{{$name}} {{$f.size}} {{json $f}} {{printf "%08.1f" $f.size}}
{{end}}`, values)
	if err != nil || strings.Count(string(out), "\n") != len(files) {
		t.Errorf("%d files: %d lines, %v", len(files), strings.Count(string(out), "\n"), err)
	}
}
