// Package query says what a search asks, and what of an item's manifest answers it: words,
// where its footprint lies, when it is from, its tags.
//
// It owns searches/NAME.yaml, how words are compared, and the paths of space, time and tags
// in a manifest. It must not know an index, nor the ledger. It is pure.
//
//	schema: 1
//	name: floods                   # as the file
//	text: flood plain
//	bbox: [116, 39, 117, 41]       # west, south, east, north; west > east: across 180°
//	from: 2013                     # a year, month, day or time; the whole of it
//	until: 2014-06
//	tags: [flood, place:Beijing]   # all of them
//	where: type = orthophoto
//	collection: maps
//
// # Words
//
// Case, accents and the width of letters are ignored. A word of the text finds words that
// begin with it; several are all wanted, and what stands in quotes is wanted in that order.
// Signs part words: gf1-pms is gf1 before pms. Scripts without spaces (Han, Kana, Thai, Lao,
// Khmer, Burmese) are compared letter by letter, in order: two letters find every word that
// they are in.
//
// # The manifest
//
//	metadata.space.wgs84.bounds    [west, south, east, north], degrees; west > east: across 180°
//	metadata.space.boundary        GeoJSON in WGS 84; without it metadata.space.wgs84.optimised, or
//	                               .boundary, as GeoJSON or WKT, as the robot describe writes it
//	metadata.time.start, .end      a time, day, month or year; without an end, the whole of start
//	metadata.tags                  texts, or lists of them by kind
//
// Bounds and boundaries that are no places on Earth are passed over.
package query
