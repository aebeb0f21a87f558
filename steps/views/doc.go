// Package views draws small pictures of files: a thumbnail and a picture to browse by.
//
// It owns how pixels become colours, and how vectors are drawn. It must not know items. Draw
// is called in a process with limits (package decoder).
//
// The rules are:
//
//   - a TIFF is read by its smallest overview that suffices, else only the blocks and rows
//     that are needed, whatever its size;
//   - values of more than 8 bits are stretched from their 2nd to their 98th percentile;
//   - where there is no data, and where a picture is transparent, is white: JPEG knows no
//     transparency.
package views
