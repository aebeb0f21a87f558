package describe

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"bagpipe/steps/space"

	"github.com/paulmach/orb"
)

const fixtures = "../../../shared/fixtures"

var now = time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC)

// read reads a file as the robot does: with all that stands beside it.
func read(t testing.TB, path string) *Facts {
	t.Helper()
	if _, err := os.Stat(path); os.IsNotExist(err) {
		t.Skip("the fixtures are not here")
	}
	q := Request{Path: path, Name: filepath.Base(path), Beside: map[string]string{}, Now: now}
	stem := strings.TrimSuffix(path, filepath.Ext(path))
	beside, err := filepath.Glob(stem + ".*")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range beside {
		q.Beside[strings.ToLower(b[len(stem):])] = b
	}
	f, err := Read(q)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return f
}

// The footprint of real objects is where their ISO 19139 metadata says.
func TestAgainstISO19139(t *testing.T) {
	for _, c := range []struct {
		data, metadata string
		off            float64 // degrees
	}{
		{"gis/nj441df9572/content/MCE_AF2G_2010.tif", "gis/nj441df9572/content/MCE_AF2G_2010-iso19139.xml", 1e-6},
		// These bounds are in NAD27, which is 95 metres off there, and of the box around the native bounds.
		{"gis/cc044gt0726/content/sanluisobispo1996.shp", "gis/cc044gt0726/content/sanluisobispo1996-iso19139.xml", 0.0011},
	} {
		data, said := read(t, filepath.Join(fixtures, c.data)), read(t, filepath.Join(fixtures, c.metadata))
		crs, err := space.ParseWKT(data.Space.CRS.WKT)
		if err != nil {
			t.Fatal(err)
		}
		b := data.Space.Native.Bounds
		box, _ := space.Outline(space.Box(b[0], b[1], b[2], b[3]), crs, "box")
		for i, v := range said.Space.WGS84.Bounds {
			if d := box.WGS84.Bounds[i] - v; math.Abs(d) > c.off {
				t.Errorf("%s: bound %d is %v off", c.data, i, d)
			}
		}
		if said.Business["title"] == nil || said.Business["abstract"] == nil || said.Entity["format"] != "ISO 19139" {
			t.Errorf("%s: %v", c.metadata, said.Business)
		}
	}
}

// Values as exiftool reads them, from the fixtures' README.
func TestPictures(t *testing.T) {
	for _, c := range []struct {
		file     string
		lon, lat float64 // NaN: none may be written down
		at       string
	}{
		{"has-lens-info.jpg", 18.06494, 59.33255, "2014-09-01T15:03:47Z"},
		{"geodegrees_as_string.jpg", 11.18285656, 52.84278106, "2014-04-26T19:09:19Z"},
		{"gps.jpg", -80.05361, 26.58667, "2018-04-28T21:23:12Z"},
		{"exif_gps.jpg", math.NaN(), 0, ""},
		{"empty_gps_ifd.jpg", math.NaN(), 0, "2020-07-27T14:46:48Z"},
		{"noExif.jpg", math.NaN(), 0, ""},
	} {
		f := read(t, filepath.Join(fixtures, "images", c.file))
		switch {
		case math.IsNaN(c.lon) != (f.Space == nil):
			t.Errorf("%s: %+v", c.file, f.Space)
		case f.Space != nil && (math.Abs(f.Space.WGS84.Centre[0]-c.lon) > 1e-5 || math.Abs(f.Space.WGS84.Centre[1]-c.lat) > 1e-5):
			t.Errorf("%s: %v", c.file, f.Space.WGS84.Centre)
		}
		if f.Space != nil && f.Space.Source != c.file {
			t.Errorf("%s: its place is from %s", c.file, f.Space.Source)
		}
		if (c.at == "") != (f.Time == nil) || f.Time != nil && f.Time.Start.Format(time.RFC3339) != c.at {
			t.Errorf("%s: %+v, want %q", c.file, f.Time, c.at)
		}
	}
}

// Pictures without an inner position lie where their world file says.
func TestWorldFiles(t *testing.T) {
	for file, want := range map[string][]float64{
		"toronto.tif":  {456800, 4945950, 469300, 4957150},
		"rgb16.tif":    {0, 0, 400, 300},
		"grey_rot.tif": nil,
	} {
		f := read(t, filepath.Join(fixtures, "worldfile", file))
		if f.Space == nil || f.Space.WGS84 != nil || len(f.Warnings) != 1 {
			t.Errorf("%s: %+v %v", file, f.Space, f.Warnings)
			continue
		}
		for i, v := range want {
			if math.Abs(f.Space.Native.Bounds[i]-v) > 1e-6 {
				t.Errorf("%s: %v, want %v", file, f.Space.Native.Bounds, want)
				break
			}
		}
	}
}

func TestTimes(t *testing.T) {
	for _, c := range []struct{ start, end, from, to, precision, says string }{
		{"1996", "", "1996-01-01T00:00:00Z", "1996-12-31T23:59:59Z", "year", ""},
		{"2013-11", "", "2013-11-01T00:00:00Z", "2013-11-30T23:59:59Z", "month", ""},
		{"2013-11-27", "2013-11-28", "2013-11-27T00:00:00Z", "2013-11-28T23:59:59Z", "day", ""},
		{"2013-11-27T10:00:00+08:00", "", "2013-11-27T02:00:00Z", "2013-11-27T02:00:00Z", "second", ""},
		{"2013-11-27 10:00:00", "", "2013-11-27T10:00:00Z", "2013-11-27T10:00:00Z", "second", "no time zone"},
		{"2013-11-27T10:00:00Z", "2013-11-27T11:00:00", "2013-11-27T10:00:00Z", "2013-11-27T11:00:00Z", "second", `"2013-11-27T11:00:00" has no time zone`},
		{"2014", "2013", "2014-01-01T00:00:00Z", "2014-12-31T23:59:59Z", "year", "before the start"},
		{"201001-01", "", "", "", "", "is no time"},
		{"2013-02-30", "", "", "", "", "is no time"},
		{"", "", "", "", "", ""},
	} {
		f := &Facts{}
		f.setTime(c.start, c.end)
		says := strings.Join(f.Warnings, "; ")
		if (c.says == "") != (says == "") || !strings.Contains(says, c.says) {
			t.Errorf("%q %q: says %q", c.start, c.end, says)
		}
		if (f.Time == nil) != (c.from == "") {
			t.Errorf("%q: %+v", c.start, f.Time)
		} else if f.Time != nil && (f.Time.Start.Format(time.RFC3339) != c.from || f.Time.End.Format(time.RFC3339) != c.to || f.Time.Precision != c.precision) {
			t.Errorf("%q %q: %+v", c.start, c.end, f.Time)
		}
	}
}

// write makes a folder of small files and reads the first.
func write(t *testing.T, files ...string) (*Facts, error) {
	t.Helper()
	dir := t.TempDir()
	q := Request{Name: files[0], Path: filepath.Join(dir, files[0]), Beside: map[string]string{}, Now: now}
	stem := strings.TrimSuffix(files[0], filepath.Ext(files[0]))
	for i := 0; i < len(files); i += 2 {
		path := filepath.Join(dir, files[i])
		if err := os.WriteFile(path, []byte(files[i+1]), 0o600); err != nil {
			t.Fatal(err)
		}
		q.Beside[strings.TrimPrefix(files[i], stem)] = path
	}
	return Read(q)
}

// A side-car may speak of what is to come; a recording cannot.
func TestTimesToCome(t *testing.T) {
	for _, c := range []struct{ name, data, says, start string }{
		{"a.xml", "<MD_Metadata><temporalElement><beginPosition>2099</beginPosition></temporalElement></MD_Metadata>", "the time begins 2099-01-01, which is to come", "2099-01-01"},
		{"a.xml", "<MD_Metadata><temporalElement><beginPosition>2013</beginPosition><endPosition>2099</endPosition></temporalElement></MD_Metadata>", "", "2013-01-01"},
		{"a.flac", string(flac("DATE=2099-05-06")), "taken 2099-05-06, which is to come; the time is left out", ""},
	} {
		f, err := write(t, c.name, c.data)
		if err != nil || strings.Join(f.Warnings, "; ") != c.says {
			t.Errorf("%s: %+v, %v, want %q", c.name, f, err, c.says)
		} else if (f.Time == nil) != (c.start == "") || f.Time != nil && f.Time.Start.Format(time.DateOnly) != c.start {
			t.Errorf("%s: %+v, want %q", c.name, f.Time, c.start)
		}
	}
}

// A period of ISO 19139 that goes on, or whose end is no time, has no end, and that is told.
func TestOpenEnd(t *testing.T) {
	for end, c := range map[string]struct{ says, end string }{
		`<endPosition>2013-12</endPosition>`:             {"", `"end":"2013-12-31T23:59:59Z"`},
		`<endPosition>n.d.</endPosition>`:                {`the end "n.d." is no time: the time has no end`, ""},
		`<endPosition indeterminatePosition="now"/>`:     {`the end is "now": the time has no end`, ""},
		`<endPosition indeterminatePosition="unknown"/>`: {`the end is "unknown": the time has no end`, ""},
	} {
		f, err := write(t, "a.xml", "<MD_Metadata><temporalElement><beginPosition>2013-11</beginPosition>"+end+"</temporalElement></MD_Metadata>")
		if err != nil || f.Time == nil || strings.Join(f.Warnings, "; ") != c.says {
			t.Errorf("%s: %+v, %v, %v", end, f, f.Warnings, err)
			continue
		}
		data, err := json.Marshal(f.Time)
		if err != nil || !strings.Contains(string(data), c.end) || c.end == "" && strings.Contains(string(data), `"end"`) {
			t.Errorf("%s: %s, %v", end, data, err)
		}
		past := &Facts{Kind: Metadata, Time: &Time{Start: f.Time.Start.AddDate(-1, 0, 0), End: f.Time.Start}}
		if all := Combine([]File{{"a.xml", 1, past}, {"b.xml", 1, f}}).Time; all.End.IsZero() != f.Time.End.IsZero() || !all.Start.Equal(past.Time.Start) {
			t.Errorf("%s: together %+v", end, all)
		}
	}
}

// What ISO 19139 has of several bounds, and of polygons alone, counts.
func TestPartsOfISO19139(t *testing.T) {
	box := func(west, south, east, north string, more ...string) string {
		return "<geographicElement><EX_GeographicBoundingBox>" + strings.Join(more, "") + "<westBoundLongitude><Decimal>" + west + "</Decimal></westBoundLongitude><eastBoundLongitude><Decimal>" + east +
			"</Decimal></eastBoundLongitude><southBoundLatitude>" + south + "</southBoundLatitude><northBoundLatitude>" + north + "</northBoundLatitude></EX_GeographicBoundingBox></geographicElement>"
	}
	polygon := func(system, points string) string {
		return `<EX_BoundingPolygon><polygon><g:Polygon xmlns:g="http://www.opengis.net/gml/3.2" srsName="` + system + `"><g:exterior><g:LinearRing>` + points + `</g:LinearRing></g:exterior><g:interior><g:LinearRing><g:posList>51 11 51 11.1 51.1 11.1 51 11</g:posList></g:LinearRing></g:interior></g:Polygon></polygon></EX_BoundingPolygon>`
	}
	for _, c := range []struct {
		name, text string
		bounds     []float64
		says       string
	}{
		{"two", box("10", "50", "11", "51") + box("20", "40", "21", "41"), []float64{10, 40, 21, 51}, ""},
		{"on both sides", box("178", "-20", "180", "-16") + box("-180", "-20", "-178", "-15"), []float64{178, -20, -178, -15}, "the footprint crosses the antimeridian: its west is greater than its east"},
		{"one of no numbers", box("10", "50", "11", "51") + box("x", "40", "21", "41"), []float64{10, 50, 11, 51}, "the bounds are no numbers"},
		{"one of NaN", box("10", "50", "11", "51") + box("20", "NaN", "21", "41"), []float64{10, 50, 11, 51}, "a coordinate of 20, NaN is of no place; its bounds are left out"},
		{"one beyond all", box("10", "50", "1e308", "51") + box("20", "40", "21", "41"), []float64{20, 40, 21, 41}, "a coordinate of 1e+308, 50 is of no place; its bounds are left out"},
		{"one that lacks its east", box("10", "50", "", "51") + box("20", "40", "21", "41"), []float64{20, 40, 21, 41}, "one of the bounds is lacking, at //*[local-name()='eastBoundLongitude']; they are left out"},
		{"one of none", box("", "", "", "") + box("20", "40", "21", "41"), []float64{20, 40, 21, 41}, ""},
		{"the whole earth", box("-180", "-90", "180", "90"), []float64{-180, -90, 180, 90}, "the footprint holds a pole"},
		{"a polygon of NaN", polygon("EPSG:4326", "<g:posList>10 50 12 50 NaN 52 10 50</g:posList>"), nil, "a coordinate of NaN, 52 is of no place; its bounds are left out"},
		{"one not covered", box("10", "50", "11", "51") + box("20", "40", "21", "41", "<extentTypeCode><Boolean>false</Boolean></extentTypeCode>"), []float64{10, 50, 11, 51}, "bounds of what is not covered are left out"},
		{"a polygon", polygon("urn:ogc:def:crs:EPSG::4326", "<g:posList>50 10 50 12 52 12 50 10</g:posList>"), []float64{10, 50, 12, 52}, ""},
		{"its points", polygon("urn:ogc:def:crs:OGC:1.3:CRS84", "<g:pos>10 50</g:pos><g:pos>12 50</g:pos><g:pos>12 52</g:pos><g:pos>10 50</g:pos>"), []float64{10, 50, 12, 52}, ""},
		{"of GML 2", polygon("EPSG:4326", "<g:coordinates>10,50 12,50 12,52 10,50</g:coordinates>"), []float64{10, 50, 12, 52}, ""},
		{"of another system", polygon("urn:ogc:def:crs:EPSG::32633", "<g:posList>1 2 3 4 5 6 1 2</g:posList>"), nil, `a bounding polygon in the reference system "urn:ogc:def:crs:EPSG::32633" is left out`},
		{"of no system", polygon("", "<g:posList>1 2 3 4 5 6 1 2</g:posList>"), nil, `a bounding polygon in the reference system "" is left out`},
		{"of no pairs", polygon("EPSG:4326", "<g:posList>1 2 3 4 5 6 1</g:posList>"), nil, "a bounding polygon is left out: its coordinates are no pairs of numbers"},
	} {
		f, err := write(t, "a.xml", "<MD_Metadata>"+c.text+"</MD_Metadata>")
		if err != nil || strings.Join(f.Warnings, "; ") != c.says {
			t.Errorf("%s: says %q, want %q: %v", c.name, f.Warnings, c.says, err)
		}
		if f.Space == nil || c.bounds == nil {
			if f.Space != nil || c.bounds != nil {
				t.Errorf("%s: %+v", c.name, f.Space)
			}
			continue
		}
		if b := f.Space.WGS84.Bounds; !slices.Equal(b, c.bounds) {
			t.Errorf("%s: %v, want %v", c.name, b, c.bounds)
		}
	}
}

// XML is read in UTF-16, too, and told of by the byte of the file where it is broken.
func TestEncodingsOfXML(t *testing.T) {
	wide := func(order binary.AppendByteOrder, text string) string {
		var b []byte
		for _, u := range utf16.Encode([]rune(text)) {
			b = order.AppendUint16(b, u)
		}
		return string(b)
	}
	const text = `<?xml version="1.0" encoding="UTF-16"?><ProductMetaData><SatelliteID>高分😀</SatelliteID></ProductMetaData>`
	for name, data := range map[string]string{"little": wide(binary.LittleEndian, "\ufeff"+text), "big": wide(binary.BigEndian, "\ufeff"+text), "without a mark": wide(binary.LittleEndian, text),
		"declared falsely": text, "UTF-8 with a mark": "\ufeff" + strings.Replace(text, "UTF-16", "UTF-8", 1)} {
		f, err := write(t, "a.xml", data)
		if err != nil || f.Entity["format"] != "Gaofen" || f.Business["satellite"] != "高分😀" {
			t.Errorf("%s: %+v, %v", name, f, err)
		}
	}
	for _, c := range []struct{ data, says string }{
		{wide(binary.LittleEndian, `<a>é<!DOCTYPE x></a>`), "XML: at byte 8: a declaration"},
		{wide(binary.LittleEndian, "\ufeff<a>😀<!-- x"), "XML: at byte 12: a comment without an end"},
		{wide(binary.BigEndian, "\ufeff<a>") + "\xd8\x00\x00x", "XML: at byte 8: half a character of UTF-16"},
		{wide(binary.BigEndian, "\ufeff<a>") + "x", "XML: at byte 8: half a character of UTF-16"},
		{"<a>gr\xfc\xdfe</a>", "XML: at byte 5: XML syntax error on line 1: invalid UTF-8"},
		{"<a><b></a>", "XML: at byte 10: XML syntax error on line 1: element <b> closed by </a>"},
	} {
		if f, err := write(t, "a.xml", c.data); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: %+v, %v, want %q", c.data, f, err, c.says)
		}
	}
}

const gaofen = `<?xml version="1.0"?><ProductMetaData><SatelliteID>GF1</SatelliteID><SensorID>PMS1</SensorID><CloudPercent>3</CloudPercent>
<StartTime>2013-11-27 11:25:33</StartTime><EndTime>2013-11-27 11:25:37</EndTime>
<TopLeftLatitude>39.5</TopLeftLatitude><TopLeftLongitude>116.3</TopLeftLongitude><TopRightLatitude>39.4</TopRightLatitude><TopRightLongitude>116.7</TopRightLongitude>
<BottomRightLatitude>39.1</BottomRightLatitude><BottomRightLongitude>116.6</BottomRightLongitude><BottomLeftLatitude>39.2</BottomLeftLatitude><BottomLeftLongitude>116.2</BottomLeftLongitude></ProductMetaData>`

func TestSatellites(t *testing.T) {
	f, err := write(t, "scene.xml", gaofen)
	if err != nil {
		t.Fatal(err)
	}
	if f.Business["satellite"] != "GF1" || f.Business["cloudPercent"] != "3" || f.Time == nil || f.Time.End.Sub(f.Time.Start) != 4*time.Second {
		t.Errorf("%+v %+v", f.Business, f.Time)
	}
	if f.Space == nil || f.Space.WGS84.Optimised != "POLYGON((116.3 39.5,116.2 39.2,116.6 39.1,116.7 39.4,116.3 39.5))" {
		t.Errorf("%+v", f.Space)
	}
}

// What is broken is refused, with the byte where it is.
func TestBrokenFiles(t *testing.T) {
	header := "\x00\x00\x27\x0a" + strings.Repeat("\x00", 96)
	for _, c := range []struct{ name, data, says string }{
		{"a.xml", `<!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>`, "XML: at byte 0: a declaration"},
		{"a.xml", `<x><!-- open`, "XML: at byte 3: a comment without an end"},
		{"a.xml", `<x>`, "XML"},
		{"a.tif", "II*\x00\x08\x00\x00\x00\x00\x00\x08\x00\x00\x00", "at byte 8: a picture of 0"},
		{"a.shp", "nonsense", "at byte 0: no header"},
		{"a.shp", header + "\x00\x00\x00\x01\x7f\xff\xff\xff\x05\x00\x00\x00", "at byte 100: a record of 4294967294 bytes"},
		{"a.shp", header + "\x00\x00\x00\x01\x00\x00\x00\x16\x05\x00\x00\x00" + strings.Repeat("\x00", 32) + "\xff\xff\xff\x7f\xff\xff\xff\x7f", "2147483647 parts"},
		{"a.mp4", "\x00\x00\x00\x04moov", "at byte 0: a box of 4 bytes"},
		{"a.mp4", "\xff\x00\x00\x00moov", "a box of 4278190080 bytes"},
		{"a.pdf", "%PDF-1.4\nnothing", "PDF: at byte 0: "},
		{"a.pdf", "", "PDF: at byte 0: "},
		{"a.pdf", strings.Replace(string(informedPDF()), "/Count 1", "/Count 9", 1), "PDF: at byte 9, in object 1 or what it leads to: "},
		{"a.pdf", strings.Replace(string(informedPDF()), "/Root 1 0 R", "/Root 8 0 R", 1), "PDF: at byte 235: "},
		{"a.jpg", "nonsense", "picture: at byte 0: no JPEG"},
		{"a.xml", "", "XML: at byte 0: "},
		{"a.xml", "none", "XML: at byte 4: "},
		{"a.mp4", "", "MP4: at byte 0: neither sound, pictures nor tags"},
		{"a.mp3", strings.Repeat("x", 500), "MP3: at byte 0: neither sound, pictures nor tags"},
		{"a.flac", "fLaC", "FLAC: at byte 0: neither sound, pictures nor tags"},
	} {
		if f, err := write(t, c.name, c.data); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s %q: %+v, %v, want %q", c.name, c.data[:min(len(c.data), 20)], f, err, c.says)
		}
	}
}

// A table whose header lies about its length is told of with the byte where it does; the geometry is read.
func TestBrokenTables(t *testing.T) {
	dir := t.TempDir()
	path, table := filepath.Join(dir, "a.shp"), filepath.Join(dir, "a.dbf")
	put := func(path, data string) {
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(path, "\x00\x00\x27\x0a"+strings.Repeat("\x00", 28)+"\x05"+strings.Repeat("\x00", 67))
	for _, length := range []string{"\x00\x00", "\x20\x00", "\xff\x7f", "\xff\xff"} {
		put(table, "\x03\x00\x00\x00\x00\x00\x00\x00"+length+strings.Repeat("\x00", 30))
		f, err := Read(Request{Path: path, Name: "a.shp", Beside: map[string]string{".dbf": table}})
		if err != nil || f.Entity["records"] != 0 || !slices.ContainsFunc(f.Warnings, func(w string) bool { return strings.HasPrefix(w, ".dbf: at byte 8: a header of ") }) {
			t.Errorf("a header of %q bytes: %+v, %v", length, f, err)
		}
	}
}

func TestCombine(t *testing.T) {
	side, err := write(t, "scene.xml", gaofen)
	if err != nil {
		t.Fatal(err)
	}
	far, err := write(t, "far.xml", strings.NewReplacer("116.", "-16.", "39.", "-39.", "2013", "2010").Replace(gaofen))
	if err != nil {
		t.Fatal(err)
	}
	picture := &Facts{Kind: Raster, Entity: map[string]any{"format": "GeoTIFF"}, Business: map[string]any{"satellite": "?", "artist": "A"}, Space: far.Space}
	o := Combine([]File{{"scene.xml", 1, side}, {"scene.tif", 9, picture}, {"x.tif", 99, &Facts{Kind: Raster, Error: "broken"}}})
	if o.Entity["file"] != "scene.tif" || o.Business["satellite"] != "GF1" || o.Business["artist"] != "A" || len(o.Warnings) != 1 {
		t.Errorf("%+v", o)
	}
	if o.Time.Source != "scene.xml" || o.Space != far.Space {
		t.Errorf("%+v %+v", o.Time, o.Space)
	}
	at := func(lon float64) File {
		place, _ := space.Outline(orb.Ring{{lon, 10}}, space.FromEPSG(4326), "p.jpg")
		return File{"p.jpg", 1, &Facts{Kind: Raster, Entity: map[string]any{}, Space: place}}
	}
	for _, c := range []struct{ from, to, west, east float64 }{{179, -178, 179, -178}, {-178, 179, 179, -178}, {-10, 20, -10, 20}, {-80, 90, -80, 90}} {
		if b := Combine([]File{at(c.from), at(c.to)}).Space.WGS84.Bounds; b[0] != c.west || b[2] != c.east {
			t.Errorf("places at %v and %v are within %v", c.from, c.to, b)
		}
	}
	m, err := Combine(nil).Metadata()
	if err != nil || len(m) != 4 || m["space"] != nil {
		t.Errorf("%v %v", m, err)
	}
	both := Combine([]File{{"a.xml", 1, side}, {"b.xml", 1, far}})
	if b := both.Space.WGS84.Bounds; b[0] > -16 || b[2] < 116 || both.Time.Start.Year() != 2010 || both.Time.End.Year() != 2013 {
		t.Errorf("%v %+v", b, both.Time)
	}
}

// FuzzRead gives every reader what it must survive. Memory is bounded by the process that
// it runs in.
func FuzzRead(f *testing.F) {
	for _, name := range []string{"a.tif", "a.shp", "a.jpg", "a.png", "a.webp", "a.pdf", "a.mp3", "a.mp4", "a.flac", "a.xml"} {
		f.Add(name, []byte("x"))
	}
	f.Add("a.xml", []byte(gaofen))
	for name, data := range mediaSamples() {
		f.Add(name, []byte(data))
	}
	f.Add("a.jpg", jpegOf(f, segment(0xe1, "Exif\x00\x00"+gpsEXIF(binary.LittleEndian, "N", rationals{{39, 1}, {54, 0}, {20, 1}}, "E", rationals{}))))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		if KindOf(name) == "" || strings.ContainsAny(name, "/\x00") || len(name) > 100 {
			return
		}
		path := filepath.Join(dir, "fuzzed"+filepath.Ext(name))
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Skip(err)
		}
		if facts, err := Read(Request{Path: path, Name: name, Beside: map[string]string{".tfw": path, ".prj": path, ".dbf": path, ".cpg": path}}); err == nil && facts.Kind == "" {
			t.Error("of no kind")
		}
	})
}
