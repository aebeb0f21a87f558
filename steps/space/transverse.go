package space

import (
	"math"

	"github.com/wroge/wgs84"
)

// transverseMercator is the projection by Krüger's series in the third flattening n, to its
// fourth power: exact to a micrometre within 20 degrees of the meridian. The library's own
// is up to 5 metres off: it takes the integer quotient 3/2 for an exponent, and another
// eccentricity for the second one.
type transverseMercator struct{ lon0, lat0, scale, x0, y0 float64 }

func series(n float64, c [4][4]float64) (out [4]float64) {
	for j := range c {
		power := 1.0
		for _, k := range c[j] {
			power *= n
			out[j] += k * power
		}
	}
	return out
}

// The coefficients of n, n², n³ and n⁴ (Karney, Transverse Mercator with an accuracy of a
// few nanometers, 2011, equations 35 and 36).
var (
	forwards   = [4][4]float64{{1. / 2, -2. / 3, 5. / 16, 41. / 180}, {0, 13. / 48, -3. / 5, 557. / 1440}, {0, 0, 61. / 240, -103. / 140}, {0, 0, 0, 49561. / 161280}}
	inverses   = [4][4]float64{{1. / 2, -2. / 3, 37. / 96, -1. / 360}, {0, 1. / 48, 1. / 15, -437. / 1440}, {0, 0, 17. / 480, -37. / 840}, {0, 0, 0, 4397. / 161280}}
	conformals = [4][4]float64{{2, -2. / 3, -2, 116. / 45}, {0, 7. / 3, -8. / 5, -227. / 45}, {0, 0, 56. / 15, -136. / 35}, {0, 0, 0, 4279. / 630}}
)

// figure gives the third flattening and the radius of the rectifying sphere.
func figure(s wgs84.Spheroid) (n, radius float64) {
	n = 1 / (2*s.Fi() - 1)
	return n, s.A() / (1 + n) * (1 + n*n/4 + n*n*n*n/64)
}

// rectified gives northing and easting on the rectifying sphere, in radians.
func rectified(lon, lat, n float64) (xi, eta float64) {
	e := 2 * math.Sqrt(n) / (1 + n)
	sin := math.Sin(lat)
	t := math.Sinh(math.Atanh(sin) - e*math.Atanh(e*sin))
	xi0 := math.Atan2(t, math.Cos(lon))
	eta0 := math.Atanh(math.Sin(lon) / math.Sqrt(1+t*t))
	xi, eta = xi0, eta0
	for j, a := range series(n, forwards) {
		k := 2 * float64(j+1)
		xi += a * math.Sin(k*xi0) * math.Cosh(k*eta0)
		eta += a * math.Cos(k*xi0) * math.Sinh(k*eta0)
	}
	return xi, eta
}

// FromLonLat is part of wgs84.Projection.
func (p transverseMercator) FromLonLat(lon, lat float64, s wgs84.Spheroid) (east, north float64) {
	n, radius := figure(s)
	xi, eta := rectified((lon-p.lon0)*math.Pi/180, lat*math.Pi/180, n)
	from, _ := rectified(0, p.lat0*math.Pi/180, n)
	return p.x0 + p.scale*radius*eta, p.y0 + p.scale*radius*(xi-from)
}

// ToLonLat is part of wgs84.Projection.
func (p transverseMercator) ToLonLat(east, north float64, s wgs84.Spheroid) (lon, lat float64) {
	n, radius := figure(s)
	from, _ := rectified(0, p.lat0*math.Pi/180, n)
	xi, eta := (north-p.y0)/(p.scale*radius)+from, (east-p.x0)/(p.scale*radius)
	xi0, eta0 := xi, eta
	for j, b := range series(n, inverses) {
		k := 2 * float64(j+1)
		xi0 -= b * math.Sin(k*xi) * math.Cosh(k*eta)
		eta0 -= b * math.Cos(k*xi) * math.Sinh(k*eta)
	}
	chi := math.Asin(math.Sin(xi0) / math.Cosh(eta0))
	phi := chi
	for j, d := range series(n, conformals) {
		phi += d * math.Sin(2*float64(j+1)*chi)
	}
	return p.lon0 + math.Atan2(math.Sinh(eta0), math.Cos(xi0))*180/math.Pi, phi * 180 / math.Pi
}
