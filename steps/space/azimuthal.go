package space

import (
	"math"

	"github.com/wroge/wgs84"
)

// azimuthalEqualArea is Lambert's projection (Snyder, Map Projections: A Working Manual, 1987, page 187). The library's own has
// no position at its centre, puts what lies around a southern centre on the northern half of the earth, and is kilometres off
// where the centre is a pole.
type azimuthalEqualArea struct{ lon0, lat0, x0, y0 float64 }

// sphere is the sphere of equal area.
type sphere struct{ e2, e, qp, radius float64 }

func authalic(s wgs84.Spheroid) (a sphere) {
	f := 1 / s.Fi()
	a.e2 = f * (2 - f)
	a.e = math.Sqrt(a.e2)
	a.qp = a.q(1)
	a.radius = s.A() * math.Sqrt(a.qp/2)
	return a
}

// q is Snyder's (3-12), of the sine of a latitude.
func (a sphere) q(sin float64) float64 {
	return (1 - a.e2) * (sin/(1-a.e2*sin*sin) + math.Atanh(a.e*sin)/a.e)
}

// beta is the latitude on the sphere, and lat comes back from it, to 1e-9 radians.
func (a sphere) beta(lat float64) float64 {
	return math.Asin(max(-1, min(1, a.q(math.Sin(lat))/a.qp)))
}

func (a sphere) lat(beta float64) float64 {
	e4, e6 := a.e2*a.e2, a.e2*a.e2*a.e2
	return beta + (a.e2/3+31*e4/180+517*e6/5040)*math.Sin(2*beta) + (23*e4/360+251*e6/3780)*math.Sin(4*beta) + 761*e6/45360*math.Sin(6*beta)
}

// centre gives the sphere, the centre's latitude on it, and what makes the scale true there.
func (p azimuthalEqualArea) centre(s wgs84.Spheroid) (a sphere, beta0, d float64) {
	a = authalic(s)
	lat0 := p.lat0 * math.Pi / 180
	if beta0 = a.beta(lat0); math.Abs(p.lat0) > 90-1e-9 {
		return a, beta0, 1
	}
	sin, cos := math.Sincos(lat0)
	return a, beta0, s.A() * cos / math.Sqrt(1-a.e2*sin*sin) / (a.radius * math.Cos(beta0))
}

// FromLonLat is part of wgs84.Projection.
func (p azimuthalEqualArea) FromLonLat(lon, lat float64, s wgs84.Spheroid) (east, north float64) {
	a, beta0, d := p.centre(s)
	sin0, cos0 := math.Sincos(beta0)
	sin, cos := math.Sincos(a.beta(lat * math.Pi / 180))
	sinLon, cosLon := math.Sincos((lon - p.lon0) * math.Pi / 180)
	b := a.radius * math.Sqrt(2/(1+sin0*sin+cos0*cos*cosLon))
	return p.x0 + b*d*cos*sinLon, p.y0 + b/d*(cos0*sin-sin0*cos*cosLon)
}

// ToLonLat is part of wgs84.Projection.
func (p azimuthalEqualArea) ToLonLat(east, north float64, s wgs84.Spheroid) (lon, lat float64) {
	a, beta0, d := p.centre(s)
	x, y := (east-p.x0)/d, (north-p.y0)*d
	rho := math.Hypot(x, y)
	if rho == 0 {
		return p.lon0, p.lat0
	}
	sin0, cos0 := math.Sincos(beta0)
	sinC, cosC := math.Sincos(2 * math.Asin(rho/(2*a.radius)))
	beta := math.Asin(max(-1, min(1, cosC*sin0+y*sinC*cos0/rho)))
	return p.lon0 + math.Atan2(x*sinC, rho*cos0*cosC-y*sin0*sinC)*180/math.Pi, a.lat(beta) * 180 / math.Pi
}
