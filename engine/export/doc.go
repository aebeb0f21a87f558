// Package export owns the forms in which what was done with items goes out: PREMIS 3.0, METS
// 1.12.1, RDF in Stanbol's vocabularies (Turtle and JSON-LD), and tables as CSV and JSON lines.
// The same records give the same bytes; all is taken from the committed records of one moment.
//
// It must not know how items are chosen, nor where payload comes from; it changes nothing. It has no
// state.
//
// # Identifiers
//
//	bagpipe:ID                    the item; in PREMIS the intellectual entity
//	bagpipe:ID/v2                 a version's representation
//	bagpipe:ID/v2/PATH            a file of it, PATH as in the inventory
//	bagpipe:ID/copy/TARGET/v2/AT  a copy of a version was written; …/v2/fixity/AT: it was looked at
//	bagpipe:ID/fixity/source/AT   a look at what was dropped; …/content/AT, …/derived/AT, …/deposit/AT
//	bagpipe:ID/accession.1        a run; …/STEP: what was done of a step; …/STEP/N-ENGINE: an attempt
//	bagpipe:plan/HEX              a pinned definition, by its SHA-256; …/STEP: a step of it
//
// # RDF
//
// ep: is http://stanbol.apache.org/ontology/enhancer/executionplan#, em:
// http://stanbol.apache.org/ontology/enhancer/executionmetadata#. A run is an
// em:ChainExecution, a step of it an em:EngineExecution. What waits is em:StatusSheduled, as
// the ontology spells it.
//
// # PREMIS
//
// Each ended attempt is an event, and so is each time a copy was written on a target, and each look at a
// copy. A record has the last look alone; whoever makes the exports gives those before (Past). Terms
// are of the Library of Congress, preservation/eventType: that of the step's premis: key, a
// built-in robot's own, the first step's accession, else execution.
//
// # Packages
//
// A dissemination package is a folder ITEM with content/ (the object), mets.xml, and
// ro-crate-metadata.json (RO-Crate 1.2). It gets its name when all of it is there.
//
// # Tables
//
// The columns of a table stay as they are; new ones come last. A cell that a spreadsheet would
// take for a formula has an apostrophe before it, in CSV alone.
package export
