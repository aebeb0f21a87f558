package space

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/wroge/wgs84"
)

// datum is a datum as WKT spells it, and its way to WGS 84.
type datum struct {
	code     int // of the geographic system on it
	gcs      string
	name     string
	spheroid string
	a, fi    float64
	shift    []float64 // of Helmert: three or seven; nil: no way is known
	approx   string
}

const within = "is within some metres of WGS 84 here"

var none = []float64{0, 0, 0}

// datums are those with a way to WGS 84, and the common ones without.
var datums = []datum{
	{4326, "WGS 84", "WGS_1984", "WGS 84", 6378137, 298.257223563, none, ""},
	{4269, "NAD83", "North_American_Datum_1983", "GRS 1980", 6378137, 298.257222101, none, ""},
	{4258, "ETRS89", "European_Terrestrial_Reference_System_1989", "GRS 1980", 6378137, 298.257222101, none, ""},
	{4490, "China Geodetic Coordinate System 2000", "China_2000", "CGCS2000", 6378137, 298.257222101, none, ""},
	{4267, "NAD27", "North_American_Datum_1927", "Clarke 1866", 6378206.4, 294.978698213898, []float64{-8, 160, 176}, "NAD27 " + within},
	{4214, "Beijing 1954", "Beijing_1954", "Krassowsky 1940", 6378245, 298.3, nil, ""},
	{4610, "Xian 1980", "Xian_1980", "IAG 1975", 6378140, 298.257, nil, ""},
}

// The methods of projections, as WKT of OGC spells them.
const (
	geographic = ""
	mercator   = "Mercator_1SP" // of the web alone
	transverse = "Transverse_Mercator"
	conformal  = "Lambert_Conformal_Conic_2SP"
	albers     = "Albers_Conic_Equal_Area"
	azimuthal  = "Lambert_Azimuthal_Equal_Area"
)

// model is a reference system as numbers.
type model struct {
	name, zone             string
	datum                  datum
	method                 string
	lon0, lat0, lat1, lat2 float64
	scale, x0, y0          float64 // x0 and y0 in unit
	unit                   float64 // metres
}

// modelOf gives the systems that come in families: UTM on four datums, and the zones of
// Gauss-Krüger on CGCS2000.
func modelOf(code int) (model, bool) {
	for _, d := range datums {
		if code == d.code {
			return model{name: d.gcs, datum: d}, true
		}
	}
	utm := func(d datum, zone int, south bool) (model, bool) {
		m := model{datum: d, method: transverse, lon0: float64(6*zone - 183), scale: 0.9996, x0: 500000, unit: 1, zone: fmt.Sprintf("%dN", zone)}
		if south {
			m.zone, m.y0 = fmt.Sprintf("%dS", zone), 10000000
		}
		m.name = d.gcs + " / UTM zone " + m.zone
		return m, true
	}
	krueger := func(zone int, width, lon float64, prefixed bool) (model, bool) {
		m := model{datum: datums[3], method: transverse, lon0: lon, scale: 1, x0: 500000, unit: 1, zone: fmt.Sprint(zone)}
		if prefixed {
			m.x0 += float64(zone) * 1e6
		}
		m.name = fmt.Sprintf("CGCS2000 / %.0f-degree Gauss-Kruger, central meridian %.0fE", width, lon)
		return m, true
	}
	switch {
	case code > 32600 && code <= 32660:
		return utm(datums[0], code-32600, false)
	case code > 32700 && code <= 32760:
		return utm(datums[0], code-32700, true)
	case code > 26900 && code <= 26923:
		return utm(datums[1], code-26900, false)
	case code >= 25828 && code <= 25838:
		return utm(datums[2], code-25800, false)
	case code > 26700 && code <= 26722:
		return utm(datums[4], code-26700, false)
	case code >= 4491 && code <= 4501:
		return krueger(code-4478, 6, float64(75+6*(code-4491)), true)
	case code >= 4502 && code <= 4512:
		return krueger(code-4489, 6, float64(75+6*(code-4502)), false)
	case code >= 4513 && code <= 4533:
		return krueger(code-4488, 3, float64(75+3*(code-4513)), true)
	case code >= 4534 && code <= 4554:
		return krueger(code-4509, 3, float64(75+3*(code-4534)), false)
	case code == 3857 || code == 900913:
		return model{name: "WGS 84 / Pseudo-Mercator", datum: datums[0], method: mercator, scale: 1, unit: 1}, true
	case code == 3035:
		return model{name: "ETRS89-extended / LAEA Europe", datum: datums[2], method: azimuthal, lon0: 10, lat0: 52, x0: 4321000, y0: 3210000, unit: 1}, true
	case code == 3310:
		return model{name: "NAD83 / California Albers", datum: datums[1], method: albers, lon0: -120, lat1: 34, lat2: 40.5, y0: -4000000, unit: 1}, true
	case code == 3309:
		return model{name: "NAD27 / California Albers", datum: datums[4], method: albers, lon0: -120, lat1: 34, lat2: 40.5, y0: -4000000, unit: 1}, true
	}
	return model{}, false
}

// code guesses the EPSG code of a system that gives none: one of the families.
func (m model) code() int {
	if m.datum.code == 0 {
		return 0
	}
	if m.method == geographic {
		return m.datum.code
	}
	zone := int(math.Round((m.lon0 + 183) / 6))
	if m.method == transverse && m.scale == 0.9996 && m.x0 == 500000 && zone >= 1 && zone <= 60 {
		for _, base := range []int{32600, 32700, 26900, 25800, 26700} {
			if got, ok := modelOf(base + zone); ok && got.same(m) {
				return base + zone
			}
		}
	}
	for _, code := range []int{3857, 3035, 3310, 3309} {
		if got, _ := modelOf(code); got.same(m) {
			return code
		}
	}
	return 0
}

// same reports whether two systems have the same numbers, whatever they are called.
func (m model) same(o model) bool {
	o.name, o.zone = m.name, m.zone
	if m.datum.code != o.datum.code {
		return false
	}
	m.datum, o.datum = datum{}, datum{}
	return fmt.Sprint(m) == fmt.Sprint(o)
}

// crs makes the system that code stands for; 0: none.
func (m model) crs(code int) CRS {
	c := CRS{Code: code, Name: m.name, WKT: m.wkt(code), Zone: m.zone, unit: m.unit, geographic: m.method == geographic}
	if m.datum.shift == nil {
		return c
	}
	c.Approx = m.datum.approx
	h := make([]float64, 7)
	copy(h, m.datum.shift)
	c.exact = c.geographic && slices.Max(h) == 0 && slices.Min(h) == 0 // the spheroids differ by 0.1 mm
	d := wgs84.Helmert(m.datum.a, m.datum.fi, h[0], h[1], h[2], h[3], h[4], h[5], h[6])
	x0, y0 := m.x0*m.unit, m.y0*m.unit
	switch m.method {
	case geographic:
		c.system = d.LonLat()
	case mercator:
		c.system, c.edge = wgs84.WebMercator(), math.Pi*m.datum.a/m.unit
	case transverse:
		c.system = wgs84.ProjectedReferenceSystem{Datum: d, Projection: transverseMercator{m.lon0, m.lat0, m.scale, x0, y0}}
	case conformal:
		c.system = d.LambertConformalConic2SP(m.lon0, m.lat0, m.lat1, m.lat2, x0, y0)
	case albers:
		c.system = d.AlbersEqualAreaConic(m.lon0, m.lat0, m.lat1, m.lat2, x0, y0)
	case azimuthal:
		c.system = wgs84.ProjectedReferenceSystem{Datum: d, Projection: azimuthalEqualArea{m.lon0, m.lat0, x0, y0}}
	}
	return c
}

// wkt spells the system as WKT 1.
func (m model) wkt(code int) string {
	authority := func(n int) string {
		if n == 0 {
			return ""
		}
		return fmt.Sprintf(`,AUTHORITY["EPSG","%d"]`, n)
	}
	d := m.datum
	gcs := fmt.Sprintf(`GEOGCS["%s",DATUM["%s",SPHEROID["%s",%.16g,%.16g]],PRIMEM["Greenwich",0],UNIT["degree",0.0174532925199433]%s]`,
		d.gcs, d.name, d.spheroid, d.a, d.fi, authority(d.code))
	if m.method == geographic {
		return gcs
	}
	var b strings.Builder
	fmt.Fprintf(&b, `PROJCS["%s",%s,PROJECTION["%s"]`, m.name, gcs, m.method)
	parameters := []any{"central_meridian", m.lon0, "false_easting", m.x0, "false_northing", m.y0}
	switch m.method {
	case mercator, transverse:
		parameters = append([]any{"latitude_of_origin", m.lat0, "scale_factor", m.scale}, parameters...)
	case conformal, albers:
		parameters = append([]any{"standard_parallel_1", m.lat1, "standard_parallel_2", m.lat2, "latitude_of_center", m.lat0}, parameters...)
	case azimuthal:
		parameters = append([]any{"latitude_of_center", m.lat0}, parameters...)
	}
	for i := 0; i < len(parameters); i += 2 {
		fmt.Fprintf(&b, `,PARAMETER["%s",%.12g]`, parameters[i], parameters[i+1])
	}
	fmt.Fprintf(&b, `,UNIT["metre",%.12g]%s]`, m.unit, authority(code))
	return b.String()
}
