// Package stac words items, collections and catalogs as STAC 1.1.0 has them.
//
// It owns the mapping from an item's manifest and inventory to a STAC item, with the
// extensions projection 2.0.0 and file 2.1.0. It must not know where documents are written,
// nor the ledger. It is pure.
//
//	geometry, bbox     the footprint (engine/query); null without one
//	datetime           metadata.time; of a span null, with start_datetime and end_datetime; of an
//	                   item without a time null, from the year 1 to when it was registered
//	proj:code          metadata.space.crs.code, as EPSG:32650
//	bands              metadata.entity.bands, a list of names, or how many there are; of images that
//	                   are data
//	assets             the files of the inventory, with file:size and file:checksum (SHA-256, as
//	                   a multihash); of those in an archive, whose address is the archive's, file:local_path
package stac
