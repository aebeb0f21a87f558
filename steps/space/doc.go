// Package space says where on the earth a geometry lies.
//
// It owns reference systems, their spelling as well-known text (WKT), the way to WGS 84, and
// footprints. It must not know files. It has no state.
//
// # metadata.space
//
//	{
//	  "source": "sheet.tif: GeoTIFF",
//	  "crs":    {"code": "EPSG:32633", "name": "…", "wkt": "…", "zone": "33N"},
//	  "native": {"bounds": [west, south, east, north], "centre": [x, y], "boundary": "POLYGON(…)"},
//	  "wgs84":  {"bounds": […], "centre": [longitude, latitude], "boundary": "…", "optimised": "…"}
//	}
//
// Boundaries are WKT of OGC's simple features, x (longitude) first. Of a raster the boundary
// is its outline, of vectors their convex hull. optimised is a valid polygon of at most 200
// vertices, cut at the antimeridian; there, as RFC 7946 has it, the bounds' west is greater
// than their east. A reference system without a way to WGS 84 has no "wgs84".
package space
