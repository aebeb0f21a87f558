// Package raster reads the structure of TIFF and GeoTIFF files, and their pixels in parts.
//
// It owns TIFF 6.0, BigTIFF, the GeoTIFF keys and the decoding of strips and tiles. It must
// not know what pixels are wanted for. A File may be used by one goroutine.
//
// The rules are:
//
//   - nothing is believed: every length is compared with the file before it is allocated,
//     directories that loop are refused, and errors say at which byte;
//   - of a picture one block, a strip or a tile, is held at a time, however large it is.
package raster
