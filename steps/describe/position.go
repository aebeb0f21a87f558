package describe

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strings"

	"bagpipe/steps/space"

	"github.com/antchfx/xmlquery"
	"github.com/bep/imagemeta"
	"github.com/paulmach/orb"
)

// position reads where a picture was taken, of EXIF or else XMP. A wrong number is worse than none, so
// a position that is not whole is left out, and told of.
func (facts *Facts) position(q Request, f io.ReaderAt, size int64, tags *imagemeta.Tags) bool {
	lat, lon, err := exifPosition(f, size, tags)
	if errors.Is(err, errNoPosition) {
		lat, lon, err = xmpPosition(q, f, size)
	}
	switch {
	case errors.Is(err, errNoPosition):
		return false
	case err != nil:
	case math.IsNaN(lat) || math.IsNaN(lon) || math.Abs(lat) > 90 || math.Abs(lon) > 180:
		err = fmt.Errorf("latitude %v, longitude %v", lat, lon)
	case lat == 0 && lon == 0:
		err = errors.New("latitude 0, longitude 0, as receivers without a fix write")
	}
	if err != nil {
		facts.warn("the position is left out: %v", err)
		return false
	}
	var warnings []string
	facts.Space, warnings = space.Outline(orb.Ring{{lon, lat}}, space.FromEPSG(4326), q.Name)
	facts.Warnings = append(facts.Warnings, warnings...)
	return true
}

var errNoPosition = errors.New("no position")

// exifPosition reads the position that EXIF has. imagemeta takes a denominator of 0 for degrees of 0, so the
// numbers are read as they stand in the file; where they are not found there, imagemeta's count.
func exifPosition(f io.ReaderAt, size int64, tags *imagemeta.Tags) (lat, lon float64, err error) {
	exif := tags.EXIF()
	if _, ok := exif["GPSLatitude"]; !ok {
		return 0, 0, errNoPosition
	}
	values := [2]float64{}
	for i, name := range []string{"GPSLatitude", "GPSLongitude"} {
		ref := strings.ToUpper(strings.Trim(fmt.Sprint(exif[name+"Ref"].Value), " \x00"))
		sides := [2]string{"NS", "EW"}[i]
		_, there := exif[name]
		if _, is := exif[name+"Ref"]; !there || !is || ref == "" {
			return 0, 0, fmt.Errorf("its %s or %sRef is lacking", name, name)
		}
		if len(ref) != 1 || !strings.Contains(sides, ref) {
			return 0, 0, fmt.Errorf("%sRef is %q, not %c or %c", name, clean(ref), sides[0], sides[1])
		}
		var ok bool
		if values[i], ok = exif[name].Value.(float64); !ok {
			return 0, 0, fmt.Errorf("%s is %q, no number", name, clean(fmt.Sprint(exif[name].Value)))
		}
		if parts, found := findGPS(f, size, uint16(2+2*i)); found {
			if values[i], err = parts.degrees(); err != nil {
				return 0, 0, fmt.Errorf("%s is %w", name, err)
			}
		}
		if ref[0] == sides[1] {
			values[i] = -values[i]
		}
	}
	return values[0], values[1], nil
}

// coordinate is what EXIF has of one: its numbers or, of writers that do not keep to that, a text.
type coordinate struct {
	numbers rationals
	text    string
	other   bool // neither is there
}

func (c coordinate) degrees() (float64, error) {
	switch {
	case c.other:
		return 0, errors.New("neither three fractions nor a text")
	case c.text != "":
		v, err := spelt(c.text)
		if err != nil {
			return 0, fmt.Errorf("the text %q, %w", clean(c.text), err)
		}
		return degrees(v)
	}
	return c.numbers.degrees()
}

// spelt reads degrees, minutes and seconds of a text. Where commas divide six parts, as telephones of HTC write them, every
// second one is that of a decimal fraction; imagemeta reads the first three parts of these.
func spelt(text string) (v [3]float64, err error) {
	parts := strings.Split(text, ",")
	if len(parts) == 6 {
		for i := range v {
			parts[i] = parts[2*i] + "." + parts[2*i+1]
		}
		parts = parts[:3]
	}
	if len(parts) != 3 {
		return v, fmt.Errorf("of %d parts, where 3 are degrees, minutes and seconds", len(parts))
	}
	for i, part := range parts {
		if v[i], err = decimal(part); err != nil || v[i] < 0 {
			return v, errNoDegrees
		}
	}
	return v, nil
}

// rationals are degrees, minutes and seconds, each a numerator and a denominator.
type rationals [3][2]uint32

func (r rationals) degrees() (float64, error) {
	var v [3]float64
	for i, part := range []string{"degrees", "minutes", "seconds"} {
		if r[i][1] == 0 {
			return 0, fmt.Errorf("of %d/0 %s, which is no number", r[i][0], part)
		}
		v[i] = float64(r[i][0]) / float64(r[i][1])
	}
	return degrees(v)
}

// degrees adds degrees, minutes and seconds up. 60 of the latter two is how some round.
func degrees(v [3]float64) (float64, error) {
	for i, part := range []string{"minutes", "seconds"} {
		if n := v[i+1]; !(n >= 0 && n <= 60) {
			return 0, fmt.Errorf("of %v %s, which are 0 to 60", n, part)
		}
	}
	return v[0] + v[1]/60 + v[2]/3600, nil
}

// beforeEXIF is what stands before a TIFF header in a JPEG and HEIF, in a PNG, and in a WebP; a DNG begins with it.
var beforeEXIF = regexp.MustCompile(`(?s)(?:Exif\x00\x00|eXIf|EXIF.{1,4})(?:II\*\x00|MM\x00\*)`)

const (
	exifWindow = 1 << 20  // bytes that are looked through at a time
	maxEXIFAt  = 64 << 20 // where EXIF is no longer looked for
)

// findGPS gives the coordinate of one tag of a picture's GPS directory.
func findGPS(f io.ReaderAt, size int64, tag uint16) (c coordinate, found bool) {
	window := make([]byte, exifWindow)
	for at := int64(0); at < min(size, maxEXIFAt); at += exifWindow - 16 { // a marker may lie across two
		n, err := f.ReadAt(window, at)
		if err != nil && err != io.EOF {
			return c, false
		}
		if head := string(window[:min(n, 4)]); at == 0 && (head == "II*\x00" || head == "MM\x00*") {
			return gpsCoordinate(f, 0, tag)
		}
		for _, m := range beforeEXIF.FindAllIndex(window[:n], 100) {
			if c, found = gpsCoordinate(f, at+int64(m[1])-4, tag); found {
				return c, true
			}
		}
	}
	return c, false
}

// gpsCoordinate follows the first directory of the EXIF at a byte to that of GPS.
func gpsCoordinate(f io.ReaderAt, start int64, tag uint16) (c coordinate, found bool) {
	var b [24]byte
	read := func(at int64, n int) bool { _, err := f.ReadAt(b[:n], start+at); return err == nil }
	if !read(0, 8) {
		return c, false
	}
	order := binary.ByteOrder(binary.LittleEndian)
	if b[0] == 'M' {
		order = binary.BigEndian
	}
	entry := func(directory uint32, tag uint16) (kind uint16, count, value uint32, found bool) {
		if !read(int64(directory), 2) {
			return
		}
		for i := range int64(order.Uint16(b[:])) {
			if !read(int64(directory)+2+12*i, 12) {
				return
			}
			if order.Uint16(b[:]) == tag {
				return order.Uint16(b[2:]), order.Uint32(b[4:]), order.Uint32(b[8:]), true
			}
		}
		return
	}
	_, _, gps, found := entry(order.Uint32(b[4:]), 0x8825)
	if !found {
		return c, false
	}
	kind, count, value, found := entry(gps, tag)
	const text, fraction, signed, mostText = 2, 5, 10, 200
	switch {
	case !found:
		return c, false
	case kind == text && count > 4 && count <= mostText:
		t := make([]byte, count)
		if _, err := f.ReadAt(t, start+int64(value)); err != nil {
			return c, false
		}
		c.text = strings.Trim(string(t), "\x00 ")
		c.other = c.text == ""
	case (kind == fraction || kind == signed) && count == 3:
		if !read(int64(value), 24) {
			return c, false
		}
		for i := range c.numbers {
			c.numbers[i] = [2]uint32{order.Uint32(b[8*i:]), order.Uint32(b[8*i+4:])}
		}
	default:
		c.other = true
	}
	return c, true
}

// xmpPosition reads the position that XMP has, as it stands there: imagemeta leaves out what it cannot read.
func xmpPosition(q Request, f io.ReaderAt, size int64) (lat, lon float64, err error) {
	packet, _ := xmpOf(f, size, imageFormats[pictureEnding(q.Name)])
	if len(packet) == 0 {
		return 0, 0, errNoPosition
	}
	doc, err := xmlquery.Parse(bytes.NewReader(packet))
	if err != nil { // which is told of
		return 0, 0, errNoPosition
	}
	values := [2]float64{}
	for i, name := range []string{"GPSLatitude", "GPSLongitude"} {
		text := first(doc, "//@*[local-name()='"+name+"'] | //*[local-name()='"+name+"']")
		if text == "" && i == 0 {
			return 0, 0, errNoPosition
		}
		if values[i], err = xmpDegrees(text, [2]string{"NS", "EW"}[i]); err != nil {
			return 0, 0, fmt.Errorf("%s is %q, %w", name, text, err)
		}
	}
	return values[0], values[1], nil
}

// xmpDegrees reads `52,50.5667N` or `52,50,34N` (XMP specification, part 2, 1.2.7.4), and decimal degrees.
func xmpDegrees(text, sides string) (float64, error) {
	text = strings.ToUpper(strings.TrimSpace(text))
	sign := 1.0
	trimmed := strings.TrimRight(text, sides)
	parts := strings.Split(trimmed, ",")
	switch {
	case len(trimmed) < len(text)-1 || len(parts) > 3:
		return 0, errNoDegrees
	case len(trimmed) < len(text):
		if text[len(text)-1] == sides[1] {
			sign = -1
		}
	case len(parts) > 1:
		return 0, fmt.Errorf("which does not end with %c or %c", sides[0], sides[1])
	}
	var v [3]float64
	for i, part := range parts {
		var err error
		if v[i], err = decimal(part); err != nil {
			return 0, errNoDegrees
		}
	}
	d, err := degrees(v)
	return sign * d, err
}

var errNoDegrees = errors.New("which are no degrees")
