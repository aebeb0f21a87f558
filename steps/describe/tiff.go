package describe

import (
	"fmt"
	"io"
	"math"
	"os"
	"strings"

	"bagpipe/steps/raster"
	"bagpipe/steps/space"

	"github.com/antchfx/xmlquery"
	"github.com/paulmach/orb"
)

// openFile opens a regular file and gives its size.
func openFile(path string) (*os.File, int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// smallFile reads a side-car, which may have at most n bytes.
func smallFile(path string, n int64) ([]byte, error) {
	f, size, err := openFile(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if size > n {
		return nil, fmt.Errorf("at byte %d: longer than the %d bytes that are read of such a file", n, n)
	}
	return io.ReadAll(io.LimitReader(f, n))
}

// readTIFF reads a TIFF: its structure, its place within or beside it.
func readTIFF(q Request, facts *Facts) error {
	file, size, err := openFile(q.Path)
	if err != nil {
		return err
	}
	defer file.Close()
	f, err := raster.Open(file, size)
	if err != nil {
		return err
	}
	p := f.Pages[0]
	e := facts.Entity
	e["format"] = "TIFF"
	if f.Big {
		e["format"] = "BigTIFF"
	}
	e["width"], e["height"], e["bands"], e["type"], e["compression"] = p.Width, p.Height, p.Bands, p.Type(), p.CompressionName()
	if p.Tiled {
		e["tiles"] = fmt.Sprintf("%d × %d", p.BlockWidth, p.BlockHeight)
	}
	overviews := 0
	for _, other := range f.Pages[1:] {
		if other.Reduced {
			overviews++
		}
	}
	say(e, "overviews", overviews)
	say(e, "pages", len(f.Pages)-overviews-1)
	if p.Nodata != nil {
		say(e, "nodata", *p.Nodata)
	}
	for key, text := range p.Texts {
		if key == "dateTime" {
			say(e, "written", text)
		} else {
			say(facts.Business, key, text)
		}
	}
	if err := f.Whole(); err != nil {
		facts.warn("%v; it cannot be drawn whole", err)
	}
	facts.place(q, p)
	return nil
}

// place says where a picture lies: by the file itself, else by what stands beside it.
func (facts *Facts) place(q Request, p *raster.Page) {
	source, crs := q.Name, space.CRS{}
	affine := (*[6]float64)(nil)
	if p.GeoError != nil {
		facts.warn("%v; the place that is meant is left out", p.GeoError)
	}
	if g := p.Geo; g != nil {
		facts.Entity["format"] = strings.Replace(facts.Entity["format"].(string), "TIFF", "GeoTIFF", 1)
		affine = g.Affine
		if crs = space.FromEPSG(g.Code); g.Code == 0 {
			crs = systemNamed(g.Name)
		} else if crs.Name == "" {
			crs.Name = clean(g.Name)
		}
	}
	if affine == nil {
		beside, from, err := worldFile(q)
		switch {
		case err != nil:
			facts.warn("%v", err)
		case beside != nil:
			affine, source = beside, from
		case p.Geo == nil:
			return
		}
	}
	if !crs.Known() {
		if beside, err := systemBeside(q); err != nil {
			facts.warn("%v", err)
		} else if beside.WKT != "" {
			crs = beside
		}
	}
	ring := orb.Ring{}
	if affine != nil {
		if resolution := (orb.Point{math.Hypot(affine[1], affine[4]), math.Hypot(affine[2], affine[5])}); space.Placed(resolution) {
			facts.Entity["resolution"] = resolution[:]
		}
		for _, c := range raster.Corners(*affine, p.Width, p.Height) {
			ring = append(ring, c)
		}
	}
	var warnings []string
	facts.Space, warnings = space.Outline(ring, crs, source)
	facts.Warnings = append(facts.Warnings, warnings...)
}

// systemNamed is the system that a GeoTIFF has but a name of: one that has no code is spelt out in it by the programs of ESRI
// and by GDAL.
func systemNamed(name string) space.CRS {
	if _, text, ok := strings.Cut(name, "ESRI PE String = "); ok {
		if c, err := space.ParseWKT(text); err == nil {
			return c
		}
	}
	return space.CRS{Name: clean(name)}
}

// worldFiles are the endings of world files, with the picture's own and without.
var worldFiles = []string{".tfw", ".tifw", ".tiffw", ".wld", ".tif.tfw", ".jgw", ".jpgw", ".jpegw", ".pgw", ".pngw"}

// worldFile reads the world file beside a picture: six numbers, of the first pixel's centre.
func worldFile(q Request) (*[6]float64, string, error) {
	for _, ending := range worldFiles {
		path, ok := q.Beside[ending]
		if !ok {
			continue
		}
		data, err := smallFile(path, 4096)
		if err != nil {
			return nil, "", fmt.Errorf("world file %s: %w", ending, err)
		}
		var v [6]float64
		fields := strings.Fields(string(data))
		if len(fields) < 6 {
			return nil, "", fmt.Errorf("world file %s: at byte %d: %d numbers of 6", ending, len(data), len(fields))
		}
		for i := range v {
			if v[i], err = decimal(strings.Replace(fields[i], ",", ".", 1)); err != nil || math.IsNaN(v[i]) || math.IsInf(v[i], 0) {
				return nil, "", fmt.Errorf("world file %s: at byte %d: %q is no number", ending, strings.Index(string(data), fields[i]), clean(fields[i]))
			}
		}
		a := [6]float64{v[4] - v[0]/2 - v[2]/2, v[0], v[2], v[5] - v[1]/2 - v[3]/2, v[1], v[3]}
		return &a, q.Name + " with its world file " + ending, nil
	}
	return nil, "", nil
}

// maxSideCar is how many bytes of a side-car are read.
const maxSideCar = 16 << 20

// systemBeside reads the reference system from a .prj or an .aux.xml.
func systemBeside(q Request) (space.CRS, error) {
	if path, ok := q.Beside[".prj"]; ok {
		return System(path)
	}
	for ending, path := range q.Beside {
		if !strings.HasSuffix(ending, ".aux.xml") {
			continue
		}
		doc, err := parseXML(path)
		if err != nil {
			return space.CRS{}, fmt.Errorf("%s: %w", ending, err)
		}
		if n := xmlquery.FindOne(doc, "//SRS"); n != nil {
			return space.ParseWKT(n.InnerText())
		}
	}
	return space.CRS{}, nil
}

// System reads the reference system of a .prj.
func System(path string) (space.CRS, error) {
	data, err := smallFile(path, 64<<10)
	if err != nil {
		return space.CRS{}, fmt.Errorf(".prj: %w", err)
	}
	c, err := space.ParseWKT(string(data))
	if err != nil {
		return c, fmt.Errorf(".prj: %w", err)
	}
	return c, nil
}
