package ocflcodes

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// registered are the extensions of the OCFL community; initial is the one that names the first.
var registered = regexp.MustCompile(`^(initial|00(0[1-9]|1[0-9])-[a-z0-9-]+)$`)

// Registered reports whether a name has the form of a registered extension's.
func Registered(name string) bool { return registered.MatchString(name) }

// Root judges the files of a storage root itself, and gives the version of OCFL that it declares.
func Root(dir string) (version string, all []Fault, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", nil, err
	}
	var f faults
	version = f.declarations(dir, entries, "ocfl_", [6]string{"E075", "E077", "E078", "E079", "E076", "E080"})
	if version == "" {
		f.add("E069", "no file declares a storage root")
	}
	data, err := os.ReadFile(filepath.Join(dir, "ocfl_layout.json"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return version, nil, err
	default:
		f.layout(data)
	}
	below, err := os.ReadDir(filepath.Join(dir, "extensions"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return version, nil, err
	}
	for _, e := range below {
		switch {
		case !e.IsDir():
			f.add("E112", "extensions/"+e.Name()+" is no folder")
		case !Registered(e.Name()):
			f.add("W016", "extensions/"+e.Name()+" is no registered extension")
		}
	}
	return version, f, nil
}

func (f *faults) layout(data []byte) {
	var named map[string]any
	if json.Unmarshal(data, &named) != nil {
		f.add("E070", "ocfl_layout.json is no JSON object")
		return
	}
	for _, key := range []string{"extension", "description"} {
		if text, is := named[key].(string); !is || text == "" {
			f.add("E070", "ocfl_layout.json has no "+key)
		}
	}
	if text, _ := named["extension"].(string); text != "" && !Registered(text) && strings.TrimSpace(text) != "" {
		f.add("E071", "ocfl_layout.json names no registered extension: "+text)
	}
}
