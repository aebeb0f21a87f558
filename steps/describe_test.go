package steps

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bagpipe/steps/describe"
)

const degreesPRJ = `GEOGCS["WGS 84",DATUM["WGS_1984",SPHEROID["WGS 84",6378137,298.257223563]],PRIMEM["Greenwich",0],UNIT["degree",0.0174532925199433]]`

// pointShapes is a shapefile of one point.
func pointShapes(x, y float64) string {
	b := binary.BigEndian.AppendUint32(nil, 9994)
	b = append(b, make([]byte, 20)...)
	b = binary.BigEndian.AppendUint32(b, 64)
	b = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(b, 1000), 1)
	for range 2 {
		b = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, math.Float64bits(x)), math.Float64bits(y))
	}
	b = append(b, make([]byte, 32)...)
	b = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(b, 1), 10)
	b = binary.LittleEndian.AppendUint32(b, 1)
	return string(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, math.Float64bits(x)), math.Float64bits(y)))
}

// table is a table of one field and one empty row.
func table(field string) string {
	head := "\x03\x7c\x01\x01\x01\x00\x00\x00\x41\x00\x05\x00" + strings.Repeat("\x00", 20)
	return head + field + strings.Repeat("\x00", 11-len(field)) + "C\x00\x00\x00\x00\x04" + strings.Repeat("\x00", 15) + "\r     "
}

// described runs the robot and gives what it says of each file.
func described(t *testing.T, files map[string]string) map[string]*describe.Facts {
	t.Helper()
	c := newItem(t, "drop", files).call()
	c.Limits.Memory = 256 << 20
	res, err := Builtins()["describe"].Robot.Run(t.Context(), c)
	must(t, err)
	data, err := os.ReadFile(filepath.Join(c.Scratch, string(res.Outputs[0].From), "describe.json"))
	must(t, err)
	var report struct{ Files map[string]*describe.Facts }
	must(t, json.Unmarshal(data, &report))
	return report.Files
}

// The files beside a file are found whatever the case of their names; of several the one that is most like it is meant.
func TestSideCarsOfAnyCase(t *testing.T) {
	tiff := "II*\x00\x08\x00\x00\x00\x04\x00" + "\x00\x01\x04\x00\x01\x00\x00\x00\x0a\x00\x00\x00" + "\x01\x01\x04\x00\x01\x00\x00\x00\x0a\x00\x00\x00" +
		"\x11\x01\x04\x00\x01\x00\x00\x00\x08\x00\x00\x00" + "\x17\x01\x04\x00\x01\x00\x00\x00\x14\x00\x00\x00" + "\x00\x00\x00\x00"
	world := func(x string) string { return "0.1\n0\n0\n-0.1\n" + x + ".05\n49.95\n" }
	said := described(t, map[string]string{
		"A.SHP": pointShapes(10, 50), "A.SHX": "", "A.DBF": table("LOUD"), "A.PRJ": degreesPRJ, "A.CPG": "UTF-8",
		"sub/a.shp": pointShapes(11, 51), "sub/a.DBF": table("MIXED"), "sub/A.prj": degreesPRJ,
		"SHEET.TIF": tiff, "sheet.tfw": world("12"), "Sheet.Prj": degreesPRJ,
		"two.tif": tiff, "two.tfw": world("13"), "TWO.TFW": world("99"), "Two.prj": degreesPRJ,
		"other/two.TFW": world("98"),
	})
	for name, c := range map[string]struct {
		west     float64
		field    any
		encoding any
	}{"A.SHP": {10, "LOUD", "UTF-8"}, "sub/a.shp": {11, "MIXED", nil}, "SHEET.TIF": {12, nil, nil}, "two.tif": {13, nil, nil}} {
		f := said[name]
		if f == nil || f.Error != "" || len(f.Warnings) > 0 || f.Space == nil || f.Space.WGS84 == nil {
			t.Errorf("%s: %+v", name, f)
			continue
		}
		if math.Abs(f.Space.WGS84.Bounds[0]-c.west) > 1e-9 || f.Entity["encoding"] != c.encoding {
			t.Errorf("%s: %v, %v", name, f.Space.WGS84, f.Entity)
		}
		if fields, _ := f.Entity["fields"].([]any); c.field != nil && !slices.Equal(fields, []any{c.field}) {
			t.Errorf("%s: fields %v", name, fields)
		}
	}
	c, _ := drawing(t)
	must(t, os.Remove(filepath.Join(c.Content, "map.png")))
	must(t, os.WriteFile(filepath.Join(c.Content, "A.SHP"), []byte(pointShapes(10, 50)), 0o644))
	if res, err := drawViews(t.Context(), c); err != nil || res.Status == Skipped {
		t.Errorf("views of A.SHP: %+v, %v", res, err)
	}
}

// What people and side-cars gave of business, time and space stays, with a warning where the files say something else; what
// describe wrote goes and comes with the files.
func TestDescribeKeepsWhatWasGiven(t *testing.T) {
	const scene = `<ProductMetaData><SatelliteID>GF1</SatelliteID><StartTime>2013-11-27T11:25:33Z</StartTime>` +
		`<TopLeftLatitude>39.5</TopLeftLatitude><TopLeftLongitude>116.3</TopLeftLongitude><TopRightLatitude>39.4</TopRightLatitude><TopRightLongitude>116.7</TopRightLongitude>` +
		`<BottomRightLatitude>39.1</BottomRightLatitude><BottomRightLongitude>116.6</BottomRightLongitude><BottomLeftLatitude>39.2</BottomLeftLatitude><BottomLeftLongitude>116.2</BottomLeftLongitude></ProductMetaData>`
	const given = `{"title":"Flood","time":{"start":"1845"},"space":{"wgs84":{"bounds":[9.5,53.3,10.3,53.6]}},"business":{"notary":"W","satellite":"none"}}`
	decoded := func(text string) (m map[string]any) {
		must(t, json.Unmarshal([]byte(text), &m))
		return m
	}
	it := newItem(t, "drop", map[string]string{"notes.txt": "a note"})
	run := func() string {
		t.Helper()
		c := it.call()
		var said strings.Builder
		c.Limits.Memory, c.Log = 256<<20, &said
		res, err := Builtins()["describe"].Robot.Run(t.Context(), c)
		must(t, err)
		data, err := json.Marshal(res.Metadata)
		must(t, err)
		it.metadata = merged(it.metadata, decoded(string(data)))
		return said.String()
	}
	check := func(when, key, want string) {
		t.Helper()
		data, err := json.Marshal(it.metadata[key])
		must(t, err)
		if string(data) != want {
			t.Errorf("%s: %s is %s, not %s", when, key, data, want)
		}
	}
	file := filepath.Join(it.dir, "source", "drop", "scene.xml")
	const times, bounds, business = `{"start":"1845"}`, `{"wgs84":{"bounds":[9.5,53.3,10.3,53.6]}}`, `{"notary":"W","satellite":"none"}`
	all := func(when string) {
		t.Helper()
		check(when, "time", times)
		check(when, "space", bounds)
		check(when, "business", business)
	}
	it.metadata = decoded(given)
	if said := run(); strings.Contains(said, "was given") {
		t.Error(said)
	}
	all("the files say nothing")
	must(t, os.WriteFile(file, []byte(scene), 0o644))
	said := run()
	all("the files say something else")
	for _, want := range []string{`metadata.time was given as {"start":"1845"} and stays`, `metadata.space was given as {"bounds":[9.5,53.3,10.3,53.6]} and stays`, `metadata.business.satellite was given as "none" and stays`} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not in %s", want, said)
		}
	}

	it.metadata = nil
	run()
	was, err := json.Marshal(it.metadata)
	must(t, err)
	run()
	if again, _ := json.Marshal(it.metadata); string(again) != string(was) {
		t.Errorf("again: %s, not %s", again, was)
	}
	it.metadata = merged(it.metadata, decoded(`{"time":{"start":"1888"},"business":{"notary":"W"}}`))
	if said := run(); !strings.Contains(said, `metadata.time was given as {"start":"1888"}`) {
		t.Error(said)
	}
	check("a person changed a part", "time", `{"start":"1888"}`)
	check("a person added to it", "business", `{"notary":"W","satellite":"GF1"}`)
	must(t, os.Remove(file))
	run()
	check("the scene is gone", "time", `{"start":"1888"}`)
	check("the scene is gone", "business", `{"notary":"W"}`)
	check("the scene is gone", "space", "null")
	check("the scene is gone", describedKey, "null")
}

// merged joins a result with metadata as the engine does.
func merged(old, now map[string]any) map[string]any {
	out := map[string]any{}
	for key, v := range old {
		out[key] = v
	}
	for key, v := range now {
		below, isMap := v.(map[string]any)
		was, wasMap := out[key].(map[string]any)
		switch {
		case v == nil:
			delete(out, key)
		case isMap && (wasMap || out[key] == nil):
			out[key] = merged(was, below)
		default:
			out[key] = v
		}
	}
	return out
}
