// Package reader has programs hand in items: what they name becomes an item, each once.
//
// It owns the program's call, its lines, and the fetching of what lies behind a URL. It must
// not know how a drop becomes an item: that is package intake's. A Readers has no state but
// the history: what was handed in is known by the identifier reader.NAME of its item. It may
// be used by several goroutines.
//
// # A line
//
// A reader prints JSON, one object a line:
//
//	{"id": "b36105", "path": "/scans/b36105", "digest": "sha256:…", "label": "A Book of Maps",
//	 "identifiers": {"barcode": "36105"}, "metadata": {"year": 1893},
//	 "collection": "maps", "workflow": "accession", "lane": "urgent"}
//
// id and one of path and url must be there. digest is that of a file, and must be there with
// url.
package reader
