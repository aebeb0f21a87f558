package describe

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"io"
	"math"
	"strings"
	"testing"
)

// jpegOf is a small picture with these segments.
func jpegOf(t testing.TB, segments ...[]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, image.NewGray(image.Rect(0, 0, 8, 4)), nil); err != nil {
		t.Fatal(err)
	}
	picture := b.Bytes()
	return bytes.Join([][]byte{picture[:2], bytes.Join(segments, nil), picture[2:]}, nil)
}

// segment is a segment of a JPEG.
func segment(marker byte, body string) []byte {
	n := len(body) + 2
	return append([]byte{0xff, marker, byte(n >> 8), byte(n)}, body...)
}

func xmpSegment(attributes string) []byte {
	return segment(0xe1, "http://ns.adobe.com/xap/1.0/\x00"+`<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description rdf:about="" `+
		`xmlns:exif="http://ns.adobe.com/exif/1.0/" xmlns:photoshop="http://ns.adobe.com/photoshop/1.0/" xmlns:xmp="http://ns.adobe.com/xap/1.0/" `+attributes+`/></rdf:RDF></x:xmpmeta>`)
}

// iptcSegment has data sets of the second record, each a number and its text.
func iptcSegment(sets ...any) []byte {
	var iptc bytes.Buffer
	for i := 0; i < len(sets); i += 2 {
		text := sets[i+1].(string)
		iptc.Write([]byte{0x1c, 2, byte(sets[i].(int)), 0, byte(len(text))})
		iptc.WriteString(text)
	}
	n := iptc.Len()
	if n%2 > 0 {
		iptc.WriteByte(0)
	}
	return segment(0xed, "Photoshop 3.0\x008BIM\x04\x04\x00\x00"+string(binary.BigEndian.AppendUint32(nil, uint32(n)))+iptc.String())
}

// gpsEXIF is EXIF of a position alone.
func gpsEXIF(order binary.AppendByteOrder, latRef string, lat rationals, lonRef string, lon rationals) string {
	b := []byte("II*\x00")
	if order == binary.AppendByteOrder(binary.BigEndian) {
		b = []byte("MM\x00*")
	}
	entry := func(tag, kind uint16, count, value uint32) {
		b = order.AppendUint32(order.AppendUint16(order.AppendUint16(b, tag), kind), count)
		b = order.AppendUint32(b, value)
	}
	text := func(tag uint16, s string) {
		b = order.AppendUint32(order.AppendUint16(order.AppendUint16(b, tag), 2), 2)
		b = append(b, s[0], 0, 0, 0)
	}
	b = order.AppendUint32(b, 8)
	b = order.AppendUint16(b, 1)
	entry(0x8825, 4, 1, 26)
	b = order.AppendUint32(b, 0)
	b = order.AppendUint16(b, 4)
	text(1, latRef)
	entry(2, 5, 3, 80)
	text(3, lonRef)
	entry(4, 5, 3, 104)
	b = order.AppendUint32(b, 0)
	for _, r := range []rationals{lat, lon} {
		for _, part := range r {
			b = order.AppendUint32(order.AppendUint32(b, part[0]), part[1])
		}
	}
	return string(b)
}

// A position is taken when all its numbers are; else none is, with a warning that says why.
func TestPositions(t *testing.T) {
	whole := func(d, m, s uint32) rationals { return rationals{{d, 1}, {m, 1}, {s, 1}} }
	lon := whole(116, 23, 29)
	exif := func(latRef string, lat rationals, lonRef string, lon rationals) []byte {
		return segment(0xe1, "Exif\x00\x00"+gpsEXIF(binary.LittleEndian, latRef, lat, lonRef, lon))
	}
	const kindAt, countAt, valueAt, lonAt, end = 42, 44, 48, 24, 128 // of the latitude
	worded := func(lat, lon string) []byte {
		b := []byte(gpsEXIF(binary.LittleEndian, "N", rationals{}, "E", rationals{}) + lat + lon)
		for i, text := range []string{lat, lon} {
			b[kindAt+i*lonAt] = 2
			binary.LittleEndian.PutUint32(b[countAt+i*lonAt:], uint32(len(text)))
			binary.LittleEndian.PutUint32(b[valueAt+i*lonAt:], uint32(end+i*len(lat)))
		}
		return segment(0xe1, "Exif\x00\x00"+string(b))
	}
	kindOf := func(kind, count byte) []byte {
		b := []byte(gpsEXIF(binary.LittleEndian, "N", whole(39, 54, 20), "E", lon))
		b[kindAt], b[countAt] = kind, count
		return segment(0xe1, "Exif\x00\x00"+string(b))
	}
	place := func(lat, lon string) []byte {
		return xmpSegment(`exif:GPSLatitude="` + lat + `" exif:GPSLongitude="` + lon + `"`)
	}
	for _, c := range []struct {
		name     string
		segment  []byte
		lat, lon float64 // NaN: none
		says     string
	}{
		{"EXIF", exif("N", whole(39, 54, 20), "E", lon), 39.905555, 116.391388, ""},
		{"EXIF, big endian", segment(0xe1, "Exif\x00\x00"+gpsEXIF(binary.BigEndian, "S", whole(39, 54, 20), "W", lon)), -39.905555, -116.391388, ""},
		{"EXIF, rounded", exif("N", whole(39, 59, 60), "E", lon), 40, 116.391388, ""},
		{"EXIF, fractions", exif("N", rationals{{39, 1}, {54333, 1000}, {0, 1}}, "E", lon), 39.90555, 116.391388, ""},
		{"EXIF, texts", worded("52,00000,50,00000,34,01180", "11,00000,10,00000,58,28360"), 52 + 50./60 + 34.0118/3600, 11 + 10./60 + 58.2836/3600, ""},
		{"EXIF, texts of three", worded("52,50,34.0118", "11, 10, 58.2836"), 52 + 50./60 + 34.0118/3600, 11 + 10./60 + 58.2836/3600, ""},
		{"EXIF, a text of four", worded("52,50,34,01180", "11,10,58,28360"), math.NaN(), 0, `GPSLatitude is the text "52,50,34,01180", of 4 parts`},
		{"EXIF, a text of none", worded("52,north,34.0118", "11,10,58.2836"), math.NaN(), 0, `GPSLatitude is the text "52,north,34.0118", which are no degrees`},
		{"EXIF, 77 minutes", worded("52,00000,77,00000,34,01180", "11,10,58.2836"), math.NaN(), 0, "GPSLatitude is of 77 minutes"},
		{"EXIF, of another kind", kindOf(3, 3), math.NaN(), 0, "GPSLatitude is neither three fractions nor a text"},
		{"EXIF, of two", kindOf(5, 2), math.NaN(), 0, "GPSLatitude is neither three fractions nor a text"},
		{"no degrees", exif("N", rationals{{39, 0}, {54, 1}, {20, 1}}, "E", lon), math.NaN(), 0, "GPSLatitude is of 39/0 degrees, which is no number"},
		{"no seconds", exif("N", whole(39, 54, 20), "E", rationals{{116, 1}, {23, 1}, {0, 0}}), math.NaN(), 0, "GPSLongitude is of 0/0 seconds, which is no number"},
		{"70 minutes", exif("N", whole(39, 70, 0), "E", lon), math.NaN(), 0, "GPSLatitude is of 70 minutes, which are 0 to 60"},
		{"99 seconds", exif("N", whole(39, 7, 99), "E", lon), math.NaN(), 0, "GPSLatitude is of 99 seconds, which are 0 to 60"},
		{"no side", exif("X", whole(39, 54, 20), "E", lon), math.NaN(), 0, `GPSLatitudeRef is "X", not N or S`},
		{"beyond", exif("N", whole(99, 54, 20), "E", lon), math.NaN(), 0, "latitude 99.9"},
		{"no fix", exif("N", whole(0, 0, 0), "E", whole(0, 0, 0)), math.NaN(), 0, "without a fix"},
		{"XMP", place("52,50.5667N", "13,24.5E"), 52.842778, 13.408333, ""},
		{"XMP, south and west", place("52,50.5667S", "13,24.5W"), -52.842778, -13.408333, ""},
		{"XMP, seconds", place("52,50,34N", "13,24,30E"), 52.842778, 13.408333, ""},
		{"XMP, decimal", place("-52.5", "13.25"), -52.5, 13.25, ""},
		{"XMP, 70 minutes", place("52,70.5N", "13,24.5E"), math.NaN(), 0, `GPSLatitude is "52,70.5N", of 70.5 minutes, which are 0 to 60`},
		{"XMP, no number", place("52,xN", "13,24.5E"), math.NaN(), 0, `GPSLatitude is "52,xN", which are no degrees`},
		{"XMP, no side", place("52,50.5", "13,24.5E"), math.NaN(), 0, "which does not end with N or S"},
		{"XMP, other side", place("52,50.5E", "13,24.5E"), math.NaN(), 0, "which does not end with N or S"},
		{"XMP, half", xmpSegment(`exif:GPSLatitude="52,50.5667N"`), math.NaN(), 0, `GPSLongitude is "", which are no degrees`},
		{"none", xmpSegment(`xmp:Rating="3"`), math.NaN(), 0, ""},
	} {
		f, err := write(t, "a.jpg", string(jpegOf(t, c.segment)))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if said := strings.Join(f.Warnings, "; "); (c.says == "") != (said == "") || !strings.Contains(said, c.says) {
			t.Errorf("%s: says %q, want %q", c.name, said, c.says)
		}
		if math.IsNaN(c.lat) != (f.Space == nil) {
			t.Errorf("%s: %+v", c.name, f.Space)
		} else if f.Space != nil && (math.Abs(f.Space.WGS84.Centre[1]-c.lat) > 1e-5 || math.Abs(f.Space.WGS84.Centre[0]-c.lon) > 1e-5) {
			t.Errorf("%s: %v", c.name, f.Space.WGS84.Centre)
		}
	}
}

// The numbers of a position are found however far in a file EXIF stands, and in a PNG.
func TestPositionFarIn(t *testing.T) {
	exif := gpsEXIF(binary.BigEndian, "N", rationals{{39, 0}, {54, 1}, {20, 1}}, "E", rationals{{116, 1}, {23, 1}, {29, 1}})
	for _, before := range []int{0, 1, exifWindow - 17, exifWindow - 12, exifWindow - 3, exifWindow, 3 * exifWindow} {
		for _, marker := range []string{"Exif\x00\x00", "eXIf", "EXIF\x30\x00\x00\x00"} {
			data := strings.Repeat("\x00", before) + marker + exif
			if r, found := findGPS(strings.NewReader(data), int64(len(data)), 2); !found || r.numbers[0] != [2]uint32{39, 0} {
				t.Errorf("%q at %d: %v, %v", marker, before, r, found)
			}
		}
	}
	if r, found := findGPS(strings.NewReader(exif), int64(len(exif)), 4); !found || r.numbers[2] != [2]uint32{29, 1} {
		t.Errorf("%v, %v", r, found)
	}
	for n := range len(exif) {
		findGPS(strings.NewReader(exif[:n]), int64(n), 2)
	}
}

// When a picture was taken is read of XMP and IPTC where EXIF does not say.
func TestWhenAPictureIsOf(t *testing.T) {
	for _, c := range []struct {
		name                        string
		segments                    [][]byte
		start, end, precision, says string
	}{
		{"photoshop", [][]byte{xmpSegment(`photoshop:DateCreated="2013-06-14T10:11:12+02:00" xmp:CreateDate="2020-01-01"`)}, "2013-06-14T08:11:12Z", "2013-06-14T08:11:12Z", "second", ""},
		{"created", [][]byte{xmpSegment(`xmp:CreateDate="2013-06-14T10:11Z"`)}, "2013-06-14T10:11:00Z", "2013-06-14T10:11:59Z", "second", ""},
		{"month", [][]byte{xmpSegment(`photoshop:DateCreated="2013-06"`)}, "2013-06-01T00:00:00Z", "2013-06-30T23:59:59Z", "month", ""},
		{"original", [][]byte{xmpSegment(`exif:DateTimeOriginal="2013-06-14" photoshop:DateCreated="2012"`)}, "2013-06-14T00:00:00Z", "2013-06-14T23:59:59Z", "day", ""},
		{"IPTC", [][]byte{iptcSegment(55, "20130614", 60, "101112+0200")}, "2013-06-14T08:11:12Z", "2013-06-14T08:11:12Z", "second", ""},
		{"IPTC, no zone", [][]byte{iptcSegment(55, "20130614", 60, "101112")}, "2013-06-14T10:11:12Z", "2013-06-14T10:11:12Z", "second", "no time zone"},
		{"IPTC, day", [][]byte{iptcSegment(55, "20130614")}, "2013-06-14T00:00:00Z", "2013-06-14T23:59:59Z", "day", ""},
		{"IPTC, month", [][]byte{iptcSegment(55, "20130600")}, "2013-06-01T00:00:00Z", "2013-06-30T23:59:59Z", "month", ""},
		{"IPTC, year", [][]byte{iptcSegment(55, "20130000")}, "2013-01-01T00:00:00Z", "2013-12-31T23:59:59Z", "year", ""},
		{"both", [][]byte{xmpSegment(`xmp:CreateDate="2020-01-01"`), iptcSegment(55, "20130614")}, "2013-06-14T00:00:00Z", "2013-06-14T23:59:59Z", "day", ""},
		{"to come", [][]byte{xmpSegment(`photoshop:DateCreated="3013-06-14"`)}, "", "", "", "which is to come"},
		{"none", [][]byte{xmpSegment(`photoshop:DateCreated="some day"`)}, "", "", "", `"some day" is no time`},
		{"neither", [][]byte{xmpSegment(`xmp:Rating="3"`)}, "", "", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := write(t, "a.jpg", string(jpegOf(t, c.segments...)))
			if err != nil {
				t.Fatal(err)
			}
			isTime(t, f, c.start, c.end, c.precision, c.says)
		})
	}
	f, err := write(t, "a.jpg", string(jpegOf(t, xmpSegment(`photoshop:City="Wittenberge" photoshop:State="Brandenburg" photoshop:Country="Germany"`), iptcSegment(92, "harbour"))))
	if err != nil {
		t.Fatal(err)
	}
	says(t, f, map[string]any{"city": "Wittenberge", "region": "Brandenburg", "country": "Germany", "location": "harbour"})
	for range 20 {
		if f, err := write(t, "a.jpg", string(jpegOf(t, iptcSegment(5, "a name", 105, "a headline")))); err != nil || fmt.Sprint(f.Business["title"]) != "a headline" {
			t.Fatalf("%v, %v", f, err)
		}
	}
}

// XMP that is broken is told of with its byte, and what EXIF and IPTC say stays; so does what an MP4 says beside broken tags.
func TestBrokenParts(t *testing.T) {
	exif := segment(0xe1, "Exif\x00\x00"+gpsEXIF(binary.LittleEndian, "N", rationals{{39, 1}, {54, 1}, {20, 1}}, "E", rationals{{116, 1}, {23, 1}, {29, 1}}))
	xmp := segment(0xe1, "http://ns.adobe.com/xap/1.0/\x00<x:xmpmeta><rdf:RDF></x:xmpmeta>")
	iptc := iptcSegment(105, "a headline")
	for name, c := range map[string]struct {
		segments [][]byte
		at       int
	}{"first": {[][]byte{xmp, exif, iptc}, 2}, "last": {[][]byte{exif, iptc, xmp}, 2 + len(exif) + len(iptc)}} {
		f, err := write(t, "a.jpg", string(jpegOf(t, c.segments...)))
		want := fmt.Sprintf("XMP: at byte %d: ", c.at+len(xmp))
		if err != nil || f.Entity["width"] != 8 || f.Business["title"] != "a headline" || f.Space == nil || len(f.Warnings) != 1 || !strings.HasPrefix(f.Warnings[0], want) {
			t.Errorf("%s: %+v, %v, want %q", name, f, err, want)
		}
	}
	f, err := write(t, "a.mov", string(box("ftyp", []byte("qt  \x00\x00\x02\x00qt  "), box("moov", box("mvhd", movie(1000, 2500)), box("udta", box("\xa9nam", []byte("\x00\x01\x00\x00T")))))))
	if err != nil || f.Entity["seconds"] != 2.5 || len(f.Warnings) != 1 || !strings.HasPrefix(f.Warnings[0], "its tags are left out: invalid encoding") {
		t.Errorf("a title of QuickTime: %+v, %v", f, err)
	}
}

// XMP of a PNG is read, also deflated; what is longer than may be read is told of with its byte.
func TestXMPOfPNG(t *testing.T) {
	text := func(deflated bool, data string) string {
		head := "XML:com.adobe.xmp\x00\x00\x00en\x00\x00"
		if deflated {
			var b bytes.Buffer
			w := zlib.NewWriter(&b)
			_, _ = io.WriteString(w, data)
			_ = w.Close()
			head, data = strings.Replace(head, "\x00\x00\x00", "\x00\x01\x00", 1), b.String()
		}
		return head + data
	}
	about := func(more string) string {
		return `<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description rdf:about="" xmlns:photoshop="http://ns.adobe.com/photoshop/1.0/" xmlns:exif="http://ns.adobe.com/exif/1.0/" ` +
			`photoshop:City="Hamburg" exif:GPSLatitude="53,33N" exif:GPSLongitude="10,0E"/></rdf:RDF>` + more + `</x:xmpmeta>`
	}
	var plain bytes.Buffer
	if err := png.Encode(&plain, image.NewGray(image.Rect(0, 0, 4, 4))); err != nil {
		t.Fatal(err)
	}
	const header = 33 // the signature and IHDR
	for _, c := range []struct{ name, text, says string }{
		{"plain", text(false, about("")), ""},
		{"deflated", text(true, about(strings.Repeat(" ", 1<<20))), ""},
		{"deflated, of 40 MB", text(true, about(strings.Repeat(" ", 40<<20))), "XMP: at byte 33: longer than the 10485660 bytes that are read; it is left out"},
		{"long", text(false, about(strings.Repeat(" ", 11<<20))), "XMP: at byte 33: longer than"},
		{"broken", text(false, "<x:xmpmeta>"), "XMP: at byte 76: "},
		{"not deflated", text(true, "")[:24] + "nonsense", "XMP: at byte 33: zlib: invalid header"},
	} {
		data := plain.String()
		chunk := binary.BigEndian.AppendUint32(nil, uint32(len(c.text)))
		f, err := write(t, "a.png", data[:header]+string(chunk)+"iTXt"+c.text+"\x00\x00\x00\x00"+data[header:])
		if err != nil || f.Entity["width"] != 4 || !strings.Contains(strings.Join(f.Warnings, "; "), c.says) {
			t.Errorf("%s: %+v, %v, want %q", c.name, f, err, c.says)
			continue
		}
		if known := f.Business["city"] == "Hamburg" && f.Space != nil; known != (c.says == "") || known && len(f.Warnings) > 0 {
			t.Errorf("%s: %+v", c.name, f)
		}
	}
	f, err := write(t, "a.jpg", string(jpegOf(t, xmpSegment(`xmlns:xmpNote="http://ns.adobe.com/xmp/note/" xmpNote:HasExtendedXMP="7A"`))))
	if err != nil || strings.Join(f.Warnings, "; ") != "XMP: it goes on beyond its first part, which alone is read" {
		t.Errorf("a JPEG's: %+v, %v", f, err)
	}
}

// Numbers are those of documents, not of Go.
func TestDecimal(t *testing.T) {
	for _, text := range []string{"0x1p3", "1_0", "", "1e400", "eight"} {
		if f, err := decimal(text); err == nil {
			t.Errorf("%q is %v", text, f)
		}
	}
	if f, err := decimal(" -1.5e1 "); err != nil || f != -15 {
		t.Errorf("%v, %v", f, err)
	}
}
