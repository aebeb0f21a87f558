package describe

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"bagpipe/layout"
	"bagpipe/testdata/sample"

	"github.com/jonas-p/go-shp"
	"github.com/paulmach/orb/encoding/wkt"
	"github.com/paulmach/orb/planar"
)

const (
	landsat = `<?xml version="1.0"?><LANDSAT_METADATA_FILE><PRODUCT_CONTENTS><LANDSAT_PRODUCT_ID>LC08_L2SP_123032_20200101</LANDSAT_PRODUCT_ID><PROCESSING_LEVEL>L2SP</PROCESSING_LEVEL></PRODUCT_CONTENTS>
<IMAGE_ATTRIBUTES><SPACECRAFT_ID>LANDSAT_8</SPACECRAFT_ID><SENSOR_ID>OLI_TIRS</SENSOR_ID><WRS_PATH>123</WRS_PATH><WRS_ROW>32</WRS_ROW><DATE_ACQUIRED>2020-01-01</DATE_ACQUIRED><SCENE_CENTER_TIME>02:53:04.1234560Z</SCENE_CENTER_TIME><CLOUD_COVER>1.5</CLOUD_COVER></IMAGE_ATTRIBUTES>
<PROJECTION_ATTRIBUTES><CORNER_UL_LAT_PRODUCT>41.4</CORNER_UL_LAT_PRODUCT><CORNER_UL_LON_PRODUCT>115.2</CORNER_UL_LON_PRODUCT><CORNER_UR_LAT_PRODUCT>41.3</CORNER_UR_LAT_PRODUCT><CORNER_UR_LON_PRODUCT>118.0</CORNER_UR_LON_PRODUCT>
<CORNER_LL_LAT_PRODUCT>39.2</CORNER_LL_LAT_PRODUCT><CORNER_LL_LON_PRODUCT>115.1</CORNER_LL_LON_PRODUCT><CORNER_LR_LAT_PRODUCT>39.3</CORNER_LR_LAT_PRODUCT><CORNER_LR_LON_PRODUCT>117.8</CORNER_LR_LON_PRODUCT></PROJECTION_ATTRIBUTES></LANDSAT_METADATA_FILE>`
	sentinel = `<?xml version="1.0"?><n1:Level-1C_User_Product xmlns:n1="https://psd-14.sentinel2.eo.esa.int/PSD/User_Product_Level-1C.xsd"><n1:General_Info><Product_Info>
<PRODUCT_START_TIME>2021-06-01T03:05:41.024Z</PRODUCT_START_TIME><PRODUCT_STOP_TIME>2021-06-01T03:05:42.024Z</PRODUCT_STOP_TIME><PROCESSING_LEVEL>Level-1C</PROCESSING_LEVEL>
<Datatake><SPACECRAFT_NAME>Sentinel-2A</SPACECRAFT_NAME><SENSING_ORBIT_NUMBER>75</SENSING_ORBIT_NUMBER></Datatake></Product_Info></n1:General_Info>
<n1:Geometric_Info><Product_Footprint><EXT_POS_LIST>40.6 115.8 40.6 117.1 39.6 117.1 39.6 115.8 40.6 115.8</EXT_POS_LIST></Product_Footprint></n1:Geometric_Info></n1:Level-1C_User_Product>`
	fgdc = `<?xml version="1.0"?><metadata><idinfo><citation><citeinfo><origin>USGS</origin><title>Quads</title></citeinfo></citation><descript><abstract>Sheets</abstract></descript>
<timeperd><timeinfo><rngdates><begdate>19960401</begdate><enddate>199708</enddate></rngdates></timeinfo></timeperd>
<spdom><bounding><westbc>-121.5</westbc><eastbc>-119.5</eastbc><northbc>35.8</northbc><southbc>34.9</southbc></bounding></spdom><keywords><theme><themekey>maps</themekey><themekey>relief</themekey></theme></keywords></idinfo></metadata>`
)

// Side-cars of other kinds say what they are about, when and where.
func TestSideCars(t *testing.T) {
	for _, c := range []struct {
		text, start, end string
		bounds           []float64
		business         map[string]any
	}{
		{landsat, "2020-01-01T02:53:04Z", "2020-01-01T02:53:04Z", []float64{115.1, 39.2, 118, 41.4}, map[string]any{"satellite": "LANDSAT_8", "cloudPercent": "1.5", "path": "123"}},
		{strings.Replace(landsat, "<SCENE_CENTER_TIME>02:53:04.1234560Z</SCENE_CENTER_TIME>", "", 1), "2020-01-01T00:00:00Z", "2020-01-01T23:59:59Z", []float64{115.1, 39.2, 118, 41.4}, nil},
		{sentinel, "2021-06-01T03:05:41Z", "2021-06-01T03:05:42Z", []float64{115.8, 39.6, 117.1, 40.6}, map[string]any{"satellite": "Sentinel-2A", "level": "Level-1C", "orbit": "75"}},
		{strings.NewReplacer("116.3", "179", "116.2", "179", "116.7", "-179", "116.6", "-179").Replace(gaofen), "2013-11-27T11:25:33Z", "2013-11-27T11:25:37Z", []float64{179, 39.1, -179, 39.5}, nil},
		{strings.NewReplacer("115.8", "179.5", "117.1", "-179.5").Replace(sentinel), "2021-06-01T03:05:41Z", "2021-06-01T03:05:42Z", []float64{179.5, 39.6, -179.5, 40.6}, nil},
		{fgdc, "1996-04-01T00:00:00Z", "1997-08-31T23:59:59Z", []float64{-121.5, 34.9, -119.5, 35.8}, map[string]any{"title": "Quads", "originator": "USGS", "keywords": []any{"maps", "relief"}}},
	} {
		f, err := write(t, "a.xml", c.text)
		if err != nil {
			t.Errorf("%.60s: %v", c.text, err)
			continue
		}
		says(t, f, c.business)
		if f.Time == nil || f.Time.Start.Format(time.RFC3339) != c.start || f.Time.End.Format(time.RFC3339) != c.end {
			t.Errorf("%v: %+v", f.Entity, f.Time)
		}
		if f.Space == nil || f.Space.WGS84 == nil {
			t.Errorf("%v: no place: %v", f.Entity, f.Warnings)
			continue
		}
		for i, v := range c.bounds {
			if math.Abs(f.Space.WGS84.Bounds[i]-v) > 1e-9 {
				t.Errorf("%v: %v, want %v", f.Entity, f.Space.WGS84.Bounds, c.bounds)
				break
			}
		}
		if across := c.bounds[0] > c.bounds[2]; across != strings.HasPrefix(f.Space.WGS84.Optimised, "MULTIPOLYGON") {
			t.Errorf("%v: %v is cut into %s", f.Entity, c.bounds, f.Space.WGS84.Optimised)
		}
	}
}

func says(t *testing.T, f *Facts, want map[string]any) {
	t.Helper()
	for key, value := range want {
		is, there := f.Business[key]
		if !there {
			is = f.Entity[key]
		}
		if !reflect.DeepEqual(is, value) {
			t.Errorf("%s is %#v, want %#v, in %v and %v", key, is, value, f.Business, f.Entity)
		}
	}
}

// Documents, sound and video say what stands in them.
func TestDocumentsAndMedia(t *testing.T) {
	for name, c := range map[string]struct {
		data []byte
		want map[string]any
	}{
		"a.pdf":  {informedPDF(), map[string]any{"format": "PDF", "pages": 1, "title": "A map", "creator": "A. Mapper"}},
		"a.mp3":  {id3("TIT2", "A song", "TPE1", "A singer", "TCON", "Folk"), map[string]any{"format": "MP3", "title": "A song", "creator": "A singer", "genre": "Folk"}},
		"a.flac": {flac("TITLE=A song", "ARTIST=A singer"), map[string]any{"format": "FLAC", "title": "A song", "creator": "A singer"}},
		"a.mp4":  {box("ftyp", []byte("isom\x00\x00\x02\x00isom"), box("moov", box("mvhd", movie(1000, 2500)))), map[string]any{"format": "MP4", "seconds": 2.5}},
		"a.jpg": {captioned(t), map[string]any{"format": "JPEG", "width": 8, "title": "Elbe in flood", "city": "Hamburg", "keywords": []any{"flood", "river"},
			"rights": "CC0"}},
	} {
		f, err := write(t, name, string(c.data))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		says(t, f, c.want)
	}
}

// informedPDF is a PDF of one page that says what it is about.
func informedPDF() []byte {
	return sample.PDF("/Info 4 0 R", "<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>",
		"<</Type/Page/Parent 2 0 R/MediaBox[0 0 400 200]/Resources<<>>>>", "<</Title(A map)/Author(A. Mapper)>>")
}

// A PDF is of the time that its information or its XMP says; a time that is in neither is left
// out. What only its information says counts where its XMP is the newer.
func TestWhenAPDFIsOf(t *testing.T) {
	xmp := func(says string) string {
		says = `<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description rdf:about="" xmlns:xmp="http://ns.adobe.com/xap/1.0/">` +
			says + `</rdf:Description></rdf:RDF></x:xmpmeta>`
		return fmt.Sprintf("<</Type/Metadata/Subtype/XML/Length %d>>\nstream\n%s\nendstream", len(says), says)
	}
	for name, c := range map[string]struct {
		info, xmp string
		want      map[string]any
	}{
		"neither":        {"<<>>", "", map[string]any{"created": nil}},
		"a year":         {"<</CreationDate(D:1999)>>", "", map[string]any{"created": "1999"}},
		"a day":          {"<</CreationDate(D:19990203)>>", "", map[string]any{"created": "1999-02-03"}},
		"a zone":         {"<</CreationDate(D:19990203040506-05'30')>>", "", map[string]any{"created": "1999-02-03T04:05:06-05:30"}},
		"no date":        {"<</CreationDate(D:19999999)>>", "", map[string]any{"created": nil}},
		"information":    {"<</CreationDate(D:20131203221936Z)>>", "", map[string]any{"created": "2013-12-03T22:19:36Z"}},
		"XMP":            {"", "<xmp:CreateDate>2013-12-03T22:19:36Z</xmp:CreateDate>", map[string]any{"created": "2013-12-03T22:19:36Z"}},
		"XMP without":    {"", "<xmp:CreatorTool>a pen</xmp:CreatorTool>", map[string]any{"created": nil, "writtenWith": "a pen"}},
		"both":           {"<</CreationDate(D:20121203221936Z)>>", "<xmp:CreateDate>2013-12-03T22:19:36Z</xmp:CreateDate>", map[string]any{"created": "2013-12-03T22:19:36Z"}},
		"newer, without": {"<</Title(A map)/CreationDate(D:20131203221936Z)>>", "<xmp:CreatorTool>a pen</xmp:CreatorTool>", map[string]any{"title": "A map", "created": "2013-12-03T22:19:36Z", "writtenWith": "a pen"}},
	} {
		t.Run(name, func(t *testing.T) {
			more, catalog := "", "<</Type/Catalog/Pages 2 0 R>>"
			if c.info != "" {
				more = "/Info 4 0 R"
			}
			if c.xmp != "" {
				catalog = "<</Type/Catalog/Pages 2 0 R/Metadata 5 0 R>>"
			}
			f, err := write(t, "a.pdf", string(sample.PDF(more, catalog, "<</Type/Pages/Kids[3 0 R]/Count 1>>",
				"<</Type/Page/Parent 2 0 R/MediaBox[0 0 400 200]/Resources<<>>>>", cmp.Or(c.info, "null"), xmp(c.xmp))))
			if err != nil {
				t.Fatal(err)
			}
			says(t, f, c.want)
		})
	}
	for _, name := range []string{"pdfa-1b-6-2-2-t01-pass-a.pdf", "pdfa-2b-6-1-13-t09-pass-a.pdf"} {
		path := filepath.Join("../../../shared/fixtures/pdf", name)
		if _, err := os.Stat(path); err != nil {
			t.Skip("the fixtures are not here")
		}
		f, err := Read(Request{Name: name, Path: path})
		if err != nil {
			t.Fatal(err)
		}
		says(t, f, map[string]any{"format": "PDF", "created": nil})
	}
}

// A PDF that was cut off is told of, also where its reader finds its way.
func TestPDFThatWasCutOff(t *testing.T) {
	whole := sample.PDF("/Info 4 0 R", "<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>",
		"<</Type/Page/Parent 2 0 R/MediaBox[0 0 400 200]/Resources<<>>>>", "<</Title(A map)>>")
	if f, err := write(t, "a.pdf", string(whole)); err != nil || len(f.Warnings) > 0 {
		t.Errorf("whole: %+v, %v", f, err)
	}
	cut := whole[:bytes.Index(whole, []byte("xref"))]
	f, err := write(t, "a.pdf", string(cut))
	if err == nil && (len(f.Warnings) != 1 || !strings.Contains(f.Warnings[0], fmt.Sprintf("at byte %d: it ends without", len(cut)))) {
		t.Errorf("cut off: %+v", f)
	}
}

// id3 is an MP3 of tags alone, each a frame's name and its text.
func id3(pairs ...string) []byte {
	var frames bytes.Buffer
	for i := 0; i < len(pairs); i += 2 {
		text := "\x00" + pairs[i+1]
		frames.WriteString(pairs[i])
		_ = binary.Write(&frames, binary.BigEndian, uint32(len(text)))
		frames.WriteString("\x00\x00" + text)
	}
	n, version := frames.Len(), byte(3)
	if slices.Contains(pairs, "TDRC") {
		version = 4
	}
	return append([]byte{'I', 'D', '3', version, 0, 0, 0, 0, byte(n >> 7), byte(n & 0x7f)}, frames.Bytes()...)
}

// flac is a FLAC of Vorbis comments alone.
func flac(comments ...string) []byte {
	var b bytes.Buffer
	le := func(text string) { _ = binary.Write(&b, binary.LittleEndian, uint32(len(text))); b.WriteString(text) }
	le("vendor")
	_ = binary.Write(&b, binary.LittleEndian, uint32(len(comments)))
	for _, c := range comments {
		le(c)
	}
	return append([]byte{'f', 'L', 'a', 'C', 0x84, 0, byte(b.Len() >> 8), byte(b.Len())}, b.Bytes()...)
}

// box is a box of an MP4, of its parts.
func box(kind string, parts ...[]byte) []byte {
	var b bytes.Buffer
	body := bytes.Join(parts, nil)
	if kind == "ftyp" { // the boxes that follow are beside it
		_ = binary.Write(&b, binary.BigEndian, uint32(8+len(parts[0])))
	} else {
		_ = binary.Write(&b, binary.BigEndian, uint32(8+len(body)))
	}
	b.WriteString(kind)
	b.Write(body)
	return b.Bytes()
}

// movie is a movie's header, of its length and how many units a second has.
func movie(scale, units uint32) []byte {
	b := make([]byte, 100)
	binary.BigEndian.PutUint32(b[12:], scale)
	binary.BigEndian.PutUint32(b[16:], units)
	return b
}

// captioned is a picture with IPTC and XMP.
func captioned(t *testing.T) []byte {
	t.Helper()
	xmp := "http://ns.adobe.com/xap/1.0/\x00" + `<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description rdf:about="" xmlns:dc="http://purl.org/dc/elements/1.1/">` +
		`<dc:rights><rdf:Alt><rdf:li xml:lang="x-default">CC0</rdf:li></rdf:Alt></dc:rights></rdf:Description></rdf:RDF></x:xmpmeta>`
	return jpegOf(t, segment(0xe1, xmp), iptcSegment(105, "Elbe in flood", 90, "Hamburg", 25, "flood", 25, "river"))
}

// Files have roles by what the object is, given anew each time, and are counted by them.
func TestRoles(t *testing.T) {
	v := layout.Inventory{Files: map[string]layout.InventoryFile{}}
	want := map[string]string{"a/sheet.tif": "main", "b/sheet.tif": "main", "c/sheet.tif": "main", "a/sheet.tfw": "metadata", "a/sheet.xml": "metadata", "a/sheet.tif.ovr": "view", "sheet_thumb.jpg": "view",
		"other.jpg": "view", "notes.docx": "attached", "roads.shp": "attached"}
	for name := range want {
		v.Files[name] = layout.InventoryFile{Size: 10, Role: "attached"}
	}
	out := Roles(&v, &Object{Entity: map[string]any{"kind": Raster}})
	for name, role := range want {
		if v.Files[name].Role != role {
			t.Errorf("%s is %s, want %s", name, v.Files[name].Role, role)
		}
	}
	if !reflect.DeepEqual(out, map[string]any{"bytes": int64(100), "sameNameAndSize": 2, "main": map[string]any{"files": int64(3), "bytes": int64(30)}, "metadata": map[string]any{"files": int64(2), "bytes": int64(20)},
		"view": map[string]any{"files": int64(3), "bytes": int64(30)}, "attached": map[string]any{"files": int64(2), "bytes": int64(20)}}) {
		t.Errorf("%v", out)
	}
	out = Roles(&v, &Object{Entity: map[string]any{"kind": Vector}})
	if v.Files["roads.shp"].Role != "main" || v.Files["a/sheet.tif"].Role != "attached" || out["main"].(map[string]any)["files"] != int64(1) {
		t.Errorf("of vectors: %+v, %v", v.Files, out)
	}
}

// Shapes on both sides of the antimeridian lie across it; those around the globe, or of an unknown system, do not.
func TestShapesOnBothSides(t *testing.T) {
	const degrees = `GEOGCS["WGS 84",DATUM["WGS_1984",SPHEROID["WGS 84",6378137,298.257223563]],PRIMEM["Greenwich",0],UNIT["degree",0.0174532925199433]]`
	for _, c := range []struct {
		parts      [][2]float64 // from west to east
		prj        string
		west, east float64
	}{
		{[][2]float64{{177, 180}, {-180, -178}}, degrees, 177, -178},
		{[][2]float64{{-180, -178}, {177, 179}, {178, 179.5}}, degrees, 177, -178},
		{[][2]float64{{-180, 180}}, degrees, -180, 180},
		{[][2]float64{{-170, -20}, {-10, 30}, {40, 170}}, degrees, -170, 170},
	} {
		dir := t.TempDir()
		w, err := shp.Create(filepath.Join(dir, "a.shp"), shp.POLYGON)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range c.parts {
			w.Write((*shp.Polygon)(shp.NewPolyLine([][]shp.Point{{{X: p[0], Y: -19}, {X: p[0], Y: -16}, {X: p[1], Y: -16}, {X: p[1], Y: -19}, {X: p[0], Y: -19}}})))
		}
		w.Close()
		prj := filepath.Join(dir, "a.prj")
		if err := os.WriteFile(prj, []byte(c.prj), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := Read(Request{Name: "a.shp", Path: filepath.Join(dir, "a.shp"), Beside: map[string]string{".prj": prj}})
		if err != nil || f.Space == nil || f.Space.WGS84 == nil {
			t.Errorf("%v: %+v, %v", c.parts, f, err)
			continue
		}
		if b := f.Space.WGS84.Bounds; b[0] != c.west || b[2] != c.east {
			t.Errorf("%v lies within %v", c.parts, b)
		}
	}
}

// What an object of one kind alone has is main, whatever its kind; world files are metadata by each of their endings.
func TestRolesOfFewFiles(t *testing.T) {
	for _, c := range []struct {
		kind, file string
		want       map[string]string
	}{
		{"", "", map[string]string{"notes.txt": "main"}},
		{"", "", map[string]string{"a.csv": "main", "b.json": "main"}},
		{"", "", map[string]string{"record.xml": "main"}},
		{"", "", map[string]string{"letter.docx": "main", "letter.xml": "metadata", "read.txt": "metadata"}},
		{"", "", map[string]string{"thumb.jpg": "main"}},
		{Image, "preview.jpg", map[string]string{"preview.jpg": "main", "preview.jpgw": "metadata", "letter.docx": "attached"}},
		{Raster, "a.tif", map[string]string{"a.tif": "main", "a.tifw": "metadata", "a.TFW": "metadata", "b.tiffw": "metadata", "b.jpegw": "metadata", "b.pngw": "metadata", "c.wld": "metadata", "notes.txt": "metadata"}},
		{"", "", map[string]string{}},
	} {
		v := layout.Inventory{Files: map[string]layout.InventoryFile{}}
		for name := range c.want {
			v.Files[name] = layout.InventoryFile{Size: 10}
		}
		o := &Object{}
		if c.kind != "" {
			o.Entity = map[string]any{"kind": c.kind, "file": c.file}
		}
		Roles(&v, o)
		for name, role := range c.want {
			if v.Files[name].Role != role {
				t.Errorf("%v: %s is %s", c.want, name, v.Files[name].Role)
			}
		}
	}
}

// scene is a Gaofen side-car with these corners, as latitude and longitude.
func scene(corners [4][2]float64) string {
	text := "<ProductMetaData><SatelliteID>GF1</SatelliteID>"
	for i, name := range []string{"TopLeft", "TopRight", "BottomRight", "BottomLeft"} {
		text += fmt.Sprintf("<%sLatitude>%v</%[1]sLatitude><%[1]sLongitude>%[3]v</%[1]sLongitude>", name, corners[i][0], corners[i][1])
	}
	return text + "</ProductMetaData>"
}

// Corners around a pole are the cap down to it, as a valid polygon, with a warning.
func TestCornersAroundAPole(t *testing.T) {
	for _, c := range []struct {
		corners [4][2]float64
		bounds  []float64
	}{
		{[4][2]float64{{85, 0}, {85, 90}, {85, 180}, {85, -90}}, []float64{-180, 85, 180, 90}},
		{[4][2]float64{{84, -45}, {85, -135}, {85, 135}, {85, 45}}, []float64{-180, 84, 180, 90}},
		{[4][2]float64{{-85, 10}, {-85, 100}, {-85, -170}, {-85, -80}}, []float64{-180, -90, 180, -85}},
	} {
		f, err := write(t, "a.xml", scene(c.corners))
		if err != nil || f.Space == nil || f.Space.WGS84 == nil {
			t.Fatalf("%v: %+v, %v", c.corners, f, err)
		}
		if !slices.Equal(f.Space.WGS84.Bounds, c.bounds) || !strings.Contains(strings.Join(f.Warnings, "\n"), "holds a pole") {
			t.Errorf("%v: %v, warnings %q", c.corners, f.Space.WGS84.Bounds, f.Warnings)
		}
		g, err := wkt.Unmarshal(f.Space.WGS84.Optimised)
		if err != nil {
			t.Fatalf("%s: %v", f.Space.WGS84.Optimised, err)
		}
		if b := g.Bound(); planar.Area(g) < 360*4.9 || b.Min[0] != -180 || b.Max[0] != 180 {
			t.Errorf("%v: %s", c.corners, f.Space.WGS84.Optimised)
		}
	}
}

// A box whose east is west of its west lies across the antimeridian, however wide it is, and native values are the file's.
func TestBoxesAcrossTheAntimeridian(t *testing.T) {
	box := func(west, east float64) string {
		return fmt.Sprintf("<metadata><idinfo><spdom><bounding><westbc>%v</westbc><eastbc>%v</eastbc><northbc>10</northbc><southbc>0</southbc></bounding></spdom></idinfo></metadata>", west, east)
	}
	for _, c := range []struct {
		text         string
		bounds, also []float64 // native, and in WGS 84 where that is another
	}{
		{box(20, 10), []float64{20, 0, 10, 10}, nil},
		{box(30, -30), []float64{30, 0, -30, 10}, nil},
		{box(170, -176), []float64{170, 0, -176, 10}, nil},
		{box(190, 200), []float64{190, 0, 200, 10}, []float64{-170, 0, -160, 10}},
		{scene([4][2]float64{{10, 179}, {10, -176}, {0, -176}, {0, 179}}), []float64{179, 0, -176, 10}, nil},
	} {
		f, err := write(t, "a.xml", c.text)
		if err != nil || f.Space == nil || f.Space.WGS84 == nil {
			t.Errorf("%s: %+v, %v", c.text, f, err)
			continue
		}
		want := ""
		if c.bounds[0] > c.bounds[2] {
			want = "the footprint crosses the antimeridian: its west is greater than its east"
		}
		if says := strings.Join(f.Warnings, "; "); says != want {
			t.Errorf("%v: says %q, want %q", c.bounds, says, want)
		}
		if !slices.Equal(f.Space.Native.Bounds, c.bounds) || strings.Contains(f.Space.Native.Boundary, "184") {
			t.Errorf("%v: native %+v", c.bounds, f.Space.Native)
		}
		if c.also == nil {
			c.also = c.bounds
		}
		if !slices.Equal(f.Space.WGS84.Bounds, c.also) {
			t.Errorf("%v: %v", c.bounds, f.Space.WGS84.Bounds)
		}
	}
}
