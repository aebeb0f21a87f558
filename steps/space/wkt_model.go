package space

import (
	"math"
	"strings"
)

// plain spells a name of WKT so that those of OGC, of ESRI and of WKT 2 are the same.
func plain(name string) string {
	name = strings.ToLower(strings.NewReplacer("_", "", " ", "", "-", "", "/", "", "(", "", ")", "").Replace(name))
	return strings.TrimPrefix(name, "d")
}

var methodsByName = map[string]string{
	"transversemercator": transverse, "gausskruger": transverse,
	"lambertconformalconic": conformal, "lambertconformalconic2sp": conformal, "lambertconicconformal2sp": conformal,
	"albersconicequalarea": albers, "albers": albers, "albersequalarea": albers,
	"lambertazimuthalequalarea":            azimuthal,
	"popularvisualisationpseudomercator":   mercator,
	"mercatorauxiliarysphere":              mercator,
	"popularvisualizationpseudomercator":   mercator,
	"popularvisualisationmercatorspheroid": mercator,
}

var datumsByName = map[string]int{ // by plain names that are not those of datums
	"wgs1984": 0, "worldgeodeticsystem1984": 0, "worldgeodeticsystem1984ensemble": 0, "wgs84": 0,
	"northamerican1983": 1, "northamericandatum1983": 1, "nad83": 1,
	"etrs1989": 2, "europeanterrestrialreferencesystem1989": 2, "europeanterrestrialreferencesystem1989ensemble": 2,
	"china2000": 3, "cgcs2000": 3,
	"northamerican1927": 4, "northamericandatum1927": 4, "nad27": 4,
	"beijing1954": 5, "xian1980": 6,
}

// model reads the numbers of a system; ok is false where its kind is not known.
func (n *node) model() (m model, ok bool) {
	m = model{name: n.arg(0), unit: 1, scale: 1}
	if m.datum, ok = n.datum(); !ok {
		return m, false
	}
	if n.geographic() {
		m.unit = 0
		m.scale = 0
		return m, degrees(n)
	}
	method, ok := methodsByName[plain(n.find("PROJECTION", "METHOD").arg(0))]
	if !ok || !degrees(n.find("GEOGCS", "BASEGEOGCRS", "BASEGEODCRS")) {
		return m, false
	}
	m.method = method
	for _, s := range n.sub {
		if s.name == "UNIT" || s.name == "LENGTHUNIT" {
			m.unit = s.number(1)
		}
	}
	if m.unit <= 0 || math.IsNaN(m.unit) {
		return m, false
	}
	m.parameters(n)
	// The library divides by zero where the two parallels are one.
	return m, method != conformal && method != albers || math.Abs(m.lat1+m.lat2) > 1e-9 && (method == albers || m.lat1 != m.lat2)
}

func (n *node) geographic() bool {
	return n.name == "GEOGCS" || n.name == "GEOGCRS" || n.name == "GEODCRS"
}

func (m *model) parameters(n *node) {
	for _, of := range []*node{n, n.find("CONVERSION")} {
		if of == nil {
			continue
		}
		for _, s := range of.sub {
			if s.name != "PARAMETER" {
				continue
			}
			to := map[string]*float64{
				"centralmeridian": &m.lon0, "longitudeofcenter": &m.lon0, "longitudeofnaturalorigin": &m.lon0, "longitudeoffalseorigin": &m.lon0, "longitudeoforigin": &m.lon0,
				"latitudeoforigin": &m.lat0, "latitudeofcenter": &m.lat0, "latitudeofnaturalorigin": &m.lat0, "latitudeoffalseorigin": &m.lat0,
				"standardparallel1": &m.lat1, "latitudeof1ststandardparallel": &m.lat1, "standardparallel2": &m.lat2, "latitudeof2ndstandardparallel": &m.lat2,
				"scalefactor": &m.scale, "scalefactoratnaturalorigin": &m.scale,
				"falseeasting": &m.x0, "eastingatfalseorigin": &m.x0, "falsenorthing": &m.y0, "northingatfalseorigin": &m.y0,
			}[plain(s.arg(0))]
			if to != nil {
				*to = s.number(1)
			}
		}
	}
	if m.method == conformal || m.method == albers || m.method == azimuthal {
		m.scale = 0 // has no meaning there
	}
}

// degrees reports whether a geographic system counts degrees from Greenwich.
func degrees(n *node) bool {
	if n == nil || n.find("PRIMEM").number(1) != 0 {
		return false
	}
	u := n.find("UNIT", "ANGLEUNIT")
	return u == nil || math.Abs(u.number(1)-math.Pi/180) < 1e-8
}

// datum reads the datum: by its name, or by the numbers of TOWGS84.
func (n *node) datum() (datum, bool) {
	of := n.find("DATUM", "ENSEMBLE")
	if i, ok := datumsByName[plain(of.arg(0))]; ok {
		return datums[i], true
	}
	s, shift := of.find("SPHEROID", "ELLIPSOID"), of.find("TOWGS84")
	d := datum{name: of.arg(0), gcs: of.arg(0), spheroid: s.arg(0), a: s.number(1), fi: s.number(2)}
	if shift == nil || len(shift.args) != 3 && len(shift.args) != 7 || d.a < 6e6 || d.a > 7e6 || d.fi < 100 {
		return d, false
	}
	for i := range shift.args {
		d.shift = append(d.shift, shift.number(i))
	}
	return d, true
}
