package recognise

import (
	"encoding/base64"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const gf1 = "GF1_PMS1_E116.5_N39.4_20131127_L1A0000117600"

const gf1XML = `<?xml version="1.0" encoding="utf-8"?>
<ProductMetaData><SatelliteID>GF1</SatelliteID><SensorID>PMS1</SensorID><ReceiveTime>2013-11-27 03:18:41</ReceiveTime>
<OrbitID>3185</OrbitID><CloudPercent>3</CloudPercent></ProductMetaData>`

// scene are the files of a GF-1 PMS scene, below prefix.
func scene(prefix, name string) map[string]string {
	out := map[string]string{}
	for _, part := range []string{"MSS1", "PAN1"} {
		out[prefix+name+"-"+part+".xml"] = gf1XML
		for _, ext := range []string{".tiff", ".rpb", ".jpg", "_thumb.jpg"} {
			out[prefix+name+"-"+part+ext] = part + ext
		}
	}
	return out
}

// oneRar is a rar 5 with a stored file NAME/NAME-MSS1.xml and its twin -PAN1.xml, as
// a listing of names is all that is asked of it.
func rarOf(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("testdata/" + gf1 + ".rar.base64")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := base64.StdEncoding.DecodeString(string(data))
	if err != nil {
		t.Fatal(err)
	}
	return file(t, gf1+".rar", string(raw))
}

func TestShippedRules(t *testing.T) {
	three := scene("", gf1)
	maps.Copy(three, scene("", "GF1_PMS1_E117.0_N39.1_20131127_L1A0000117601"))
	delete(three, gf1+"-MSS1_thumb.jpg")
	without := scene("", gf1)
	delete(without, gf1+"-PAN1.xml")
	bag := map[string]string{"bagit.txt": "BagIt-Version: 1.0\n", "manifest-sha256.txt": "", "data/a": "a"}
	inBag := map[string]string{}
	for p, text := range bag {
		inBag["letters/"+p] = text
	}
	image := map[string]string{"map.tif": "II*\x00", "map.tfw": "1", "map.tif.aux.xml": "<a/>", "map-iso19139.xml": "<b/>", "preview.jpg": "x"}
	for _, c := range []struct {
		about, path, rule string
		verdict           Verdict
		kind              string // of object
	}{
		{"GF-1 PMS, a folder", tree(t, gf1, scene("", gf1)), "satellites/gf1-pms", Yes, "satellite-scene"},
		{"in a folder in the folder", tree(t, gf1, scene(gf1+"/", gf1)), "satellites/gf1-pms", Yes, "satellite-scene"},
		{"without its PAN1.xml", tree(t, gf1, without), "satellites/gf1-pms", Maybe, "satellite-scene"},
		{"tar.gz", tarred(t, gf1+".tar.gz", scene(gf1+"/", gf1)), "satellites/gf1-pms", Yes, "satellite-scene"},
		{"zip", zipped(t, gf1+".zip", scene("", gf1)), "satellites/gf1-pms", Yes, "satellite-scene"},
		{"rar", rarOf(t), "satellites/gf1-pms", Yes, "satellite-scene"},
		{"a folder called otherwise", tree(t, "delivery 7", scene("", gf1)), "satellites/one-inside", Yes, "satellite-scene"},
		{"a zip called otherwise", zipped(t, "delivery.zip", scene(gf1+"/", gf1)), "satellites/one-inside", Yes, "satellite-scene"},
		{"two scenes side by side", tree(t, "delivery", three), "satellites/side-by-side", Yes, "objects"},
		{"two scenes side by side, packed", zipped(t, "delivery.zip", three), "satellites/side-by-side", Yes, "objects"},
		{"a damaged scene", file(t, gf1+".tar.gz", "\x1f\x8b\x08 damaged"), "satellites/gf1-pms", Yes, "satellite-scene"},
		{"GF-1 WFV", file2(t, "GF1_WFV3_E114.7_N33.9_20160321_L1A0001478270"), "satellites/gf1-wfv", Yes, "satellite-scene"},
		{"GF-1C", fileMUX(t, "GF1C_PMS_E118.3_N36.5_20190427_L1A1227640431"), "satellites/gf1bcd-pms", Yes, "satellite-scene"},
		{"GF-2", tree(t, "GF2_PMS1_E113.6_N24.1_20180409_L1A0003112050", scene("", "GF2_PMS1_E113.6_N24.1_20180409_L1A0003112050")), "satellites/gf2-pms", Yes, "satellite-scene"},
		{"ZY-3", file2(t, "ZY302_TMS_E109.4_N34.1_20180126_L1A0000203862"), "satellites/zy3", Yes, "satellite-scene"},
		{"ZY-3, small letters", zipped(t, "zy3_mux_E116.5_N39.4_20130811_L1A0001321570.zip", image), "satellites/zy3", Yes, "satellite-scene"},
		{"Landsat 8", tree(t, "LC08_L1TP_123032_20131127_20170428_01_T1", map[string]string{"LC08_L1TP_123032_20131127_20170428_01_T1_MTL.txt": "x", "LC08_L1TP_123032_20131127_20170428_01_T1_B1.TIF": "x"}), "satellites/landsat", Yes, "satellite-scene"},
		{"Landsat 5, old name", zipped(t, "LT51230321994125BJC00.zip", image), "satellites/landsat-old", Yes, "satellite-scene"},
		{"Sentinel-2", tree(t, "S2A_MSIL1C_20170105T013442_N0204_R031_T53NMJ_20170105T013443.SAFE", map[string]string{"manifest.safe": "x", "MTD_MSIL1C.xml": "<a/>", "GRANULE/a/b.jp2": "x"}), "satellites/sentinel-2", Yes, "satellite-scene"},
		{"a bag", tree(t, "letters", bag), "bags/folder", Yes, "bag"},
		{"a bag in a zip", zipped(t, "letters.zip", inBag), "bags/serialized", Yes, "bag"},
		{"a bag in a tar.gz", tarred(t, "letters.tar.gz", inBag), "bags/serialized", Yes, "bag"},
		{"an image with side-cars", tree(t, "map sheet", image), "images/one", Yes, "geo-image"},
		{"an image with side-cars, packed", zipped(t, "sheet.zip", image), "images/one", Yes, "geo-image"},
		{"two images with world files", tree(t, "sheets", map[string]string{"a.tif": "x", "a.tfw": "x", "b.tif": "x", "b.tfw": "x", "b.tif.ovr": "x"}), "images/several", Yes, "geo-images"},
		{"a shapefile", tree(t, "roads", map[string]string{"roads.SHP": "x", "roads.shx": "x", "roads.dbf": "x", "roads.prj": "x"}), "shapefiles/one", Yes, "shapefile"},
		{"a shapefile without its index", tree(t, "roads", map[string]string{"roads.shp": "x", "roads.dbf": "x"}), "shapefiles/incomplete", Maybe, "shapefile"},
		{"a PDF with MODS", tree(t, "thesis", map[string]string{"thesis.pdf": "%PDF-1.4\n", "mods.xml": `<mods xmlns="http://www.loc.gov/mods/v3"><titleInfo><title>A thesis</title></titleInfo></mods>`}), "documents/pdf-mods", Yes, "document-mods"},
		{"a PDF with METS", tree(t, "thesis", map[string]string{"thesis.pdf": "%PDF-1.4\n", "thesis_mets.xml": `<m:mets xmlns:m="http://www.loc.gov/METS/" OBJID="obj-1"/>`}), "documents/pdf-mets", Yes, "document-mets"},
		{"a PDF with MODS, packed", zipped(t, "thesis.zip", map[string]string{"t/thesis.pdf": "%PDF-1.4\n", "t/mods.xml": `<mods/>`}), "documents/pdf-mods", Maybe, "document-mods"},
		{"a PDF", file(t, "a.pdf", "%PDF-1.4\n"), "documents/pdf", Yes, "document"},
		{"a large TIFF", file(t, "map.tif", "II+\x00\x08\x00\x00\x00\x10\x00\x00\x00\x00\x00\x00\x00"), "images/photographs", Yes, "image"},
		{"audio", file(t, "tape.wav", "RIFF\x24\x00\x00\x00WAVEfmt "), "media/audio", Yes, "audio"},
		{"video", file(t, "film.mp4", "\x00\x00\x00\x18ftypmp42\x00\x00\x00\x00mp42isom"), "media/video", Yes, "video"},
		{"an archive of its own name", zipped(t, "letters.zip", map[string]string{"letters/1.txt": "x", "letters/2.txt": "x"}), "archives/one-object", Maybe, "packed-object"},
		{"letters", tree(t, "letters", map[string]string{"1.txt": "x", "2.txt": "x"}), "default/any", Yes, ""},
		{"a text", file(t, "1.txt", "Dear Sir"), "default/any", Yes, ""},
		{"a damaged zip", file(t, "x.zip", "PK\x03\x04 and then nothing"), "default/any", Yes, ""},
	} {
		o := ask(t, c.path, shipped(t)...)
		if o.Rule != c.rule || o.Verdict != c.verdict || o.Type != c.kind {
			t.Errorf("%s: %s says %s, type %q; want %s, %s, %q", c.about, o.Rule, o.Verdict, o.Type, c.rule, c.verdict, c.kind)
			for _, one := range o.Tried {
				t.Logf("  %s %s: %s", one.Rule, one.Verdict, one.Reason)
			}
		}
	}
}

func file2(t *testing.T, name string) string {
	return tree(t, name, map[string]string{name + ".xml": gf1XML, name + ".tiff": "x", name + ".rpb": "x", name + ".jpg": "x"})
}

func fileMUX(t *testing.T, name string) string {
	return tree(t, name, map[string]string{name + "-MUX.xml": gf1XML, name + "-PAN.xml": gf1XML, name + "-MUX.tiff": "x", name + "-PAN.tiff": "x"})
}

func TestSceneIsDescribed(t *testing.T) {
	o := ask(t, tree(t, gf1, scene("", gf1)), shipped(t)...)
	if diff := cmp.Diff(map[string]string{"product": "L1A0000117600", "scene": gf1}, o.Identifiers); diff != "" {
		t.Error(diff)
	}
	want := map[string]any{"satellite": "GF1", "sensor": "PMS1", "longitude": 116.5, "latitude": 39.4, "date": "2013-11-27", "level": "L1A",
		"cloudPercent": 3.0, "orbit": "3185", "receivedAt": "2013-11-27T03:18:41Z"}
	if diff := cmp.Diff(want, o.Metadata); diff != "" {
		t.Error(diff)
	}
	for _, name := range []string{"delivery 7", gf1} {
		if o := ask(t, zipped(t, name+".zip", scene(gf1+"/", gf1)), shipped(t)...); o.Identifiers["product"] != "L1A0000117600" || o.Metadata["longitude"] != 116.5 {
			t.Errorf("%s.zip: %v, %v", name, o.Identifiers, o.Metadata)
		}
	}
	o = ask(t, tree(t, "delivery", map[string]string{gf1 + "-MSS1.xml": "x", gf1 + "-PAN1.xml": "x", "GF2_PMS1_E113.6_N24.1_20180409_L1A0003112050.tar.gz": "x"}), shipped(t)...)
	if o.Workflow != "objects" || o.Metadata["objectCount"] != 2 || !cmp.Equal(o.Metadata["objects"], []string{gf1, "GF2_PMS1_E113.6_N24.1_20180409_L1A0003112050"}) {
		t.Errorf("%s, %v", o.Workflow, o.Metadata)
	}
}

// Real spatial objects, made elsewhere.
func TestRealSpatialObjects(t *testing.T) {
	root := filepath.Join("..", "..", "..", "..", "shared", "fixtures", "gis")
	if _, err := os.Stat(root); err != nil {
		t.Skipf("the real inputs are not here: %v", err)
	}
	for name, want := range map[string]struct {
		rule, kind, title string
		west              float64
	}{
		"nj441df9572": {"images/one", "geo-image", "Afghanistan 2G Mobile Coverage Explorer, 2010", 56.249996},
		"cc044gt0726": {"shapefiles/one", "shapefile", "Important Farmland, San Luis Obispo County, California, 1996", -121.346875},
	} {
		o := ask(t, filepath.Join(root, name), shipped(t)...)
		if o.Rule != want.rule || o.Verdict != Yes || o.Type != want.kind {
			t.Errorf("%s: %s says %s, %s", name, o.Rule, o.Verdict, o.Type)
		}
		if o.Metadata["title"] != want.title || o.Metadata["west"] != want.west || !strings.HasPrefix(o.Identifiers["iso19139"], "edu.stanford.purl:") {
			t.Errorf("%s: %v, %v", name, o.Identifiers, o.Metadata)
		}
	}
}

// Every command reads the rules; that must take no time to speak of.
func BenchmarkParseShipped(b *testing.B) {
	for b.Loop() {
		shipped(b)
	}
}

// In a catalog what the rules find in folders inside alone makes no object of a folder; of a drop it does.
func TestFoldersOfCatalogs(t *testing.T) {
	b := NewBook(append(shipped(t), rules(t, `rules:
  - {name: named, match: {name: 'deed-*', holds: '**/page.bin'}}
  - {name: way, match: {holds: 'pages/*.page'}}
  - {name: either, match: {any: [{find: '\.one$'}, {count: [{regexp: '\.two$', min: 1}]}]}}
`)))
	set := func(base string) map[string]string {
		return map[string]string{base + ".shp": "x", base + ".shx": "x", base + ".dbf": "x"}
	}
	wav := "RIFF\x24\x00\x00\x00WAVEfmt "
	scenes := scene("", gf1)
	maps.Copy(scenes, scene("", "GF1_PMS1_E117.0_N39.1_20131127_L1A0000117601"))
	apart := scene(gf1+"/", gf1)
	maps.Copy(apart, scene("GF1_PMS1_E117.0_N39.1_20131127_L1A0000117601/", "GF1_PMS1_E117.0_N39.1_20131127_L1A0000117601"))
	with := func(files map[string]string, more ...string) map[string]string {
		for _, p := range more {
			files[p] = "x"
		}
		return files
	}
	two := set("north/roads")
	maps.Copy(two, set("south/rivers"))
	for _, c := range []struct {
		about         string
		files         map[string]string
		drop, catalog string
	}{
		{"a shapefile deep in an office", with(set("plans/roads/gis/roads"), "letters/a.doc"), "shapefiles/incomplete", ""},
		{"one in each of two folders", two, "shapefiles/several", ""},
		{"one directly", with(set("roads"), "letters/a.doc"), "shapefiles/incomplete", "shapefiles/incomplete"},
		{"one directly, and an older one", with(set("roads"), "old/was.shp"), "shapefiles/incomplete", "shapefiles/incomplete"},
		{"one beside a map", with(set("roads"), "map.tif", "map.tfw"), "shapefiles/incomplete", ""},
		{"one with all that belongs to it", with(set("gis/roads"), "readme.txt"), "shapefiles/one", "shapefiles/one"},
		{"one in a folder alone", set("gis/roads"), "shapefiles/one", "shapefiles/one"},
		{"a scene among others", with(scene("x/"+gf1+"/", gf1), "a.doc"), "satellites/one-inside", ""},
		{"scenes side by side", scenes, "satellites/side-by-side", ""},
		{"scenes in folders side by side", apart, "satellites/side-by-side", ""},
		{"music deep in a home", map[string]string{"music/a.wav": wav, "b.doc": "x"}, "media/audio-folder", ""},
		{"music", map[string]string{"a.wav": wav, "b.doc": "x"}, "media/audio-folder", "media/audio-folder"},
		{"a METS file with its PDFs in a folder", with(map[string]string{}, "mets.xml", "pdf/1.pdf"), "documents/pdf-mets", "documents/pdf-mets"},
		{"both in a folder inside", with(map[string]string{}, "a/b/mets.xml", "a/b/1.pdf", "c.txt"), "documents/pdf-mets", ""},
		{"both in a folder inside, and another PDF", with(map[string]string{}, "a/b/mets.xml", "a/b/1.pdf", "c.pdf"), "documents/pdf-mets", ""},
		{"what a rule asks for the way to", with(map[string]string{}, "pages/1.page", "a.txt"), "test/way", "test/way"},
		{"one of several conditions", with(map[string]string{}, "a.two", "b/a.txt"), "test/either", "test/either"},
		{"one of several conditions, inside", with(map[string]string{}, "a.txt", "b/a.two"), "test/either", ""},
	} {
		for _, in := range []struct {
			o    Options
			want string
		}{{Options{}, c.drop}, {Options{Particular: true}, c.catalog}} {
			o, err := b.Recognise(t.Context(), Candidate{Path: tree(t, "office", c.files), Name: "office", Collection: "maps"}, in.o)
			if err != nil {
				t.Fatal(err)
			}
			if o.Rule != in.want {
				t.Errorf("%s, of a catalog %v: %q, expected %q", c.about, in.o.Particular, o.Rule, in.want)
			}
		}
	}
	o, err := b.Recognise(t.Context(), Candidate{Path: tree(t, "deed-1", with(map[string]string{}, "a/b/page.bin", "c.txt")), Name: "deed-1", Collection: "maps"}, Options{Particular: true})
	if err != nil || o.Rule != "test/named" {
		t.Errorf("a rule that asks for the folder's name: %q, %v", o.Rule, err)
	}
}
