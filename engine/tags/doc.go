// Package tags says which tags an object gets: of its name and path by vocabularies, of its
// time by year and month, of its footprint by places.
//
// It owns vocabularies/NAME.yaml and places/NAME.geojson. It must not know where tags are
// kept, nor the ledger. It is pure; a Book that was made is only read.
//
//	schema: 1
//	name: hazards              # as the file
//	kind: business             # of its tags; time and place are not for vocabularies
//	tags:
//	  flood: [flood, flood plain, 洪水]
//	  drought:                 # its own name
//
// A tag fits where one of its texts stands in the object's label, the name of what was
// dropped, or its path in a catalog: whole words one after the other, whatever their case and
// accents, as engine/query parts them.
//
// places/NAME.geojson is a FeatureCollection of polygons, each with a name among its
// properties. A place fits where a part of the footprint lies in it; to touch is not enough.
//
// Of a time of less than a year the months are tags, too.
package tags
