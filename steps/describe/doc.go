// Package describe says what a file says of itself: what it is technically, what it is
// about, when it is of and where it lies.
//
// It owns the reading of TIFF, shapefiles, pictures, PDF, audio, video and XML side-cars, and
// how what several files say becomes the description of one object. It must not know items.
// Read and the rest are called in a process with limits (package decoder).
//
// # What an object says
//
// Four members of the manifest's metadata, none of them there where nothing is known:
//
//	"entity":   {"file": NAME, "kind": "raster", "format": "GeoTIFF", "width": 7460, …}
//	            of the principal file, the largest of the most telling kind
//	"business": {"title": …, "abstract": …, "keywords": […], …}
//	            from side-cars first, from within files next
//	"time":     {"start": "1996-01-01T00:00:00Z", "end": "1996-12-31T23:59:59Z", "precision": "day", "source": NAME}
//	"space":    as package space has it
//
// derived/STEP/describe.json has the same of every file, and its warnings.
package describe
