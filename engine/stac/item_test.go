package stac

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bagpipe/layout"

	"github.com/dlclark/regexp2"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/tidwall/gjson"
)

const fixtures = "../../../shared/fixtures/stac"

type ecma struct{ *regexp2.Regexp }

func (e ecma) MatchString(s string) bool {
	ok, err := e.Regexp.MatchString(s)
	return ok && err == nil
}

// schemas are STAC's, registered under the addresses they are served by.
func schemas(t *testing.T) *jsonschema.Compiler {
	t.Helper()
	if _, err := os.Stat(fixtures); err != nil {
		t.Skip("no fixtures")
	}
	c := jsonschema.NewCompiler()
	c.UseRegexpEngine(func(s string) (jsonschema.Regexp, error) { // STAC's expressions look ahead, which Go's cannot
		re, err := regexp2.Compile(s, regexp2.ECMAScript)
		return ecma{re}, err
	})
	for dir, address := range map[string]string{"stac-spec-1.1.0": "https://schemas.stacspec.org/v1.1.0/", "extensions": "https://stac-extensions.github.io/",
		"geojson": "https://geojson.org/schema/", "projjson": "https://proj.org/schemas/v0.7/"} {
		root := filepath.Join(fixtures, dir)
		err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(p) != ".json" {
				return err
			}
			f, err := os.Open(p)
			if err != nil {
				return err
			}
			defer f.Close()
			doc, err := jsonschema.UnmarshalJSON(f)
			if err != nil {
				return err
			}
			delete(doc.(map[string]any), "$id")
			rel, _ := filepath.Rel(root, p)
			return c.AddResource(address+strings.Replace(filepath.ToSlash(rel), "projjson-v0.7.", "projjson.", 1), doc)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func TestItemsAreValid(t *testing.T) {
	c, dir := schemas(t), t.TempDir()
	inventory := `{"schema": 1, "files": {"a/b%25.tif": {"size": 3, "sha256": "` + strings.Repeat("ab", 32) + `", "type": "image/tiff"}, "preview:1.jpg": {"size": 2, "sha256": "` + strings.Repeat("cd", 32) + `", "type": "image/jpeg", "role": "view"}}}`
	for name, metadata := range map[string]string{
		"plain":       `{}`,
		"packed":      `{"time": {"start": "2013"}, "entity": {"bands": ["red"]}}`,
		"box":         `{"space": {"wgs84": {"bounds": [116, 39, 117, 41]}, "native": {"code": "EPSG:32650"}}, "time": {"start": "2013"}, "tags": ["a"], "entity": {"bands": 4}}`,
		"antimeridan": `{"space": {"wgs84": {"bounds": [177, -20, -178, -12]}}, "time": {"start": "2013-01-02T03:04:05Z"}, "entity": {"bands": ["red"]}}`,
		"described":   `{"space": {"crs": {"code": "EPSG:32650", "zone": "50N"}, "native": {"bounds": [1, 2, 3, 4], "boundary": "POLYGON((1 2,3 2,3 4,1 2))"}, "wgs84": {"bounds": [179, 0, -179, 1], "boundary": "POLYGON((179 0,181 0,181 1,179 0))", "optimised": "MULTIPOLYGON(((179 0,180 0,180 0.5,179 0)),((-180 0,-179 0,-179 1,-180 0.5,-180 0)))"}}}`,
		"not closed":  `{"space": {"wgs84": {"bounds": [0, 0, 1, 1]}, "boundary": {"type": "Polygon", "coordinates": [[[0,0],[1,0],[500,1]]]}}}`,
		"no bounds":   `{"space": {"boundary": {"type": "Point", "coordinates": [1, 2]}}}`,
		"boundary":    `{"space": {"wgs84": {"bounds": [0, 0, 1, 1]}, "boundary": {"type": "Polygon", "coordinates": [[[0,0],[1,0],[1,1],[0,0]]]}}}`,
	} {
		manifest := `{"schema": 1, "item": "` + string(layout.ItemIDOf(0x3fa9c0d2e1b7a4)) + `", "version": 1, "label": "x", "collection": "maps", "created": "2026-01-01T00:00:00Z", "metadata": ` + metadata + `}`
		at := Files{Href: func(n string) string { return "./" + n }}
		if name == "packed" {
			at = Files{Href: func(string) string { return "../x.zip" }, Packed: true}
		}
		data, err := Item([]byte(manifest), []byte(inventory), at)
		if err != nil {
			t.Fatal(name, err)
		}
		sameAsWanted(t, name, data)
		if err := os.WriteFile(filepath.Join(dir, name+".json"), data, 0o644); err != nil {
			t.Fatal(err)
		}
		var doc any
		if err := json.Unmarshal(data, &doc); err != nil {
			t.Fatal(err)
		}
		if has, want := doc.(map[string]any)["properties"].(map[string]any)["proj:code"], name == "box" || name == "described"; (has == "EPSG:32650") != want {
			t.Errorf("%s: proj:code %v", name, has)
		}
		if g, _ := doc.(map[string]any)["geometry"].(map[string]any); name == "described" && g["type"] != "MultiPolygon" {
			t.Errorf("%s: the footprint that describe wrote is %v", name, g)
		}
		addresses := []string{"https://schemas.stacspec.org/v1.1.0/item-spec/json-schema/item.json"}
		for _, e := range doc.(map[string]any)["stac_extensions"].([]any) {
			addresses = append(addresses, e.(string))
		}
		for _, address := range addresses {
			s, err := c.Compile(address)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Validate(doc); err != nil {
				t.Errorf("%s against %s: %v\n%s", name, address, err, data)
			}
		}
	}
	independently(t, dir)
}

// sameAsWanted holds an item against what its case is about.
func sameAsWanted(t *testing.T, name string, data []byte) {
	t.Helper()
	const tif, preview = `assets.a/b%25\.tif.`, `assets.preview:1\.jpg.`
	for path, want := range map[string]map[string]string{
		"plain":  {"properties.datetime": "null", "properties.start_datetime": `"0001-01-01T00:00:00Z"`, "properties.end_datetime": `"2026-01-01T00:00:00Z"`, tif + "file:size": "3", tif + "file:local_path": ""},
		"box":    {"properties.start_datetime": `"2013-01-01T00:00:00Z"`, tif + "bands.#": "4", preview + "bands": "", preview + "file:size": "2", preview + "roles.0": `"overview"`},
		"packed": {tif + "href": `"../x.zip"`, tif + "file:size": "", tif + "file:checksum": "", tif + "type": "", tif + "file:local_path": `"a/b%25.tif"`, preview + "file:local_path": "", preview + "href": `"../x.zip"`},
	}[name] {
		if got := gjson.GetBytes(data, path).Raw; got != want {
			t.Errorf("%s: %s is %s, want %s", name, path, got, want)
		}
	}
}

// independently asks Python's jsonschema, too, where it is there.
func independently(t *testing.T, dir string) {
	t.Helper()
	documents, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(documents) == 0 {
		t.Fatal(documents, err)
	}
	out, err := exec.Command("python3", append([]string{"testdata/validate.py", fixtures}, documents...)...).CombinedOutput()
	var ended *exec.ExitError
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.As(err, &ended) && ended.ExitCode() == 77:
		t.Log("Python's jsonschema is not installed; one validator was asked")
	case err != nil:
		t.Errorf("%v\n%s", err, out)
	}
}

func TestCatalogsAndCollectionsAreValid(t *testing.T) {
	c := schemas(t)
	links := []Link{{Rel: "root", Href: "./catalog.json", Type: JSON}}
	catalog, err := Catalog("bagpipe", "all", links)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2013, 1, 2, 3, 4, 5, 0, time.UTC)
	collection, err := Collection("maps", "Maps", []float64{-180, -90, 180, 90}, time.Time{}, at, links)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for address, data := range map[string][]byte{"catalog-spec/json-schema/catalog.json": catalog, "collection-spec/json-schema/collection.json": collection} {
		var doc any
		if err := json.Unmarshal(data, &doc); err != nil {
			t.Fatal(err)
		}
		s, err := c.Compile("https://schemas.stacspec.org/v1.1.0/" + address)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(doc); err != nil {
			t.Errorf("%s: %v\n%s", address, err, data)
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(address)), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	independently(t, dir)
}
