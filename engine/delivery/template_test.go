package delivery

import (
	"errors"
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
