// Package recognise tells what a drop is, by rules that people write.
//
// It owns the rule language (rules/NAME.yaml), the reading of metadata.rule files, and
// the trial of rules on a path, of which it reads names, first bytes and side-cars and
// changes nothing. It must not know workflows, items, Git or the engine: what a rule
// names is looked up by its caller. A Book may be used by several goroutines; each
// trial has its own facts. A channel bounds how many archives are listed at once.
//
// # A rule file
//
//	schema: 1
//	name: scans                   # as the file's name
//	description: TEXT
//	order: N                      # files of a lower order are asked before; default 0;
//	                              # of the same order by name; default.yaml is the last
//	namespaces: {PREFIX: URI}     # for the XPaths in this file
//	lists:
//	  drops:  {allow: [PATTERN], deny: [PATTERN]}   # which drops are taken in at all
//	  inside: {allow: [PATTERN], deny: [PATTERN]}   # which names inside are looked at
//	keywords:
//	  - keyword: dom              # a folder's name, or its type; '' is every folder
//	    files: [RULE, FILE/RULE]  # asked first of a file there, in this order
//	    folders: [RULE]           # asked first of a folder there
//	rules:                        # asked from the top
//	  - name: NAME
//	    description: TEXT
//	    listed: true              # asked only where a keyword or a metadata.rule names it
//	    match: CONDITIONS         # must hold; else the rule says no
//	    expect: CONDITIONS        # should hold, too; else the rule says maybe
//	    program: [PROGRAM, ARG]   # says, too, what it takes the drop for (program.go)
//	    verdict: yes|maybe|no     # the most it says; no: what fits is refused
//	    type: NAME                # what becomes of the drop
//	    workflow: NAME
//	    collection: NAME
//	    lane: NAME
//	    label: TEXT
//	    identifiers: {NAME: VALUE}
//	    metadata: {NAME: VALUE}
//	    split: deep               # no object itself: they are looked for at any depth (deep.go)
//	    known: reject|version     # when an item has one of its identifiers; default reject
//	quality:                      # how items are checked (quality.go)
//	  - for: CONDITION            # on the item, as a named queue's; default: all
//	    checks:
//	      - id: NAME
//	        level: LEVEL          # layout.QualityLevels
//	        raster: opens         # one of these four
//	        regexp: EXPRESSION    # of the object's name
//	        path: PATH            # is there, in the manifest or below its metadata;
//	        after: TIME           # and not before this,
//	        before: TIME          # and before that
//	        match: CONDITIONS     # of the content
//	        else: fail|warn       # default fail
//	        stop: true            # where it does not hold, nothing after it is reached
//
// Files of before this language was extended hold name, rules[].name, match with
// collection, kind and name, workflow and lane; they mean what they meant.
//
// # Conditions
//
// All that are given must hold; they are asked in this order. A list of texts may be
// one text.
//
//	collection: NAMES             it was dropped in
//	kind: folder|bag|archive|file
//	name: PATTERNS                of the drop, case counts
//	regexp: EXPRESSION            of the drop's name
//	extension: TEXTS              of the drop's name, case does not count
//	size: {min: SIZE, max: SIZE}  of a folder: of all files in it
//	mime: [image/tiff, audio/*]   of a file, by its first 3,072 bytes
//	magic: [{at: N, hex: DIGITS | text: TEXT}]    one of them stands in the file
//	top: PATTERN                  everything inside is in one folder of this name
//	find: EXPRESSION              of a name inside; the first that fits
//	sets: {main: EXPRESSION, by: TEXT, required: PATTERNS, optional: PATTERNS, min: 1, max: N, alone: BOOL}
//	holds: PATTERNS               names inside, each of them
//	lacks: PATTERNS               none of them is inside
//	may: PATTERNS                 told if they are inside
//	count: [{name: PATTERN, regexp: EXPRESSION, mime: TYPES, min: N, max: N}]
//	xml: [{file: PATTERN, path: XPATH, is: TEXTS, matches: EXPRESSION}]
//	json: [{file: PATTERN, path: GJSON, is: TEXTS, matches: EXPRESSION}]
//	all: [CONDITIONS]  any: [CONDITIONS]  not: CONDITIONS
//
// Names inside are paths below the top: the folder that alone holds everything, if
// there is one, within folders that do the same. A PATTERN is as everywhere
// (docs/reference.md, Patterns), or A|B: either; for names inside, case does not count. Expressions are Go's, which take time linear in the text; their
// named groups become variables, which later conditions and values use as ${NAME}:
// quoted in patterns, as they are elsewhere. Always there are ${name}, ${stem} (without
// extension), ${extension}, ${kind}, ${collection}, ${top} (of the outermost top) and
// ${sets}. A variable that nothing can set is an error of the file.
//
// sets groups the files inside: each that fits main begins a set, or joins one where by
// has the same value. Every set must have a file for each of required; optional ones
// belong to it, too; alone wants nothing else there. With max: 1 its groups become
// variables; with more the sets' names are metadata.objects, and their number
// metadata.objectCount.
//
// A VALUE is a text with variables, or keys: text, or xml or json with file, and as:
// text, number, date (RFC 3339) or degrees (W and S are negative). What is not there
// is left out; what cannot be converted stays text.
//
// # What is said
//
// A condition says yes, no, or unknown: what cannot be listed or read (an archive that
// is damaged, XML that is not) does not keep a drop out. A rule says the least of what
// its match says; maybe where match holds and expect does not. The rules are asked in
// this order:
//
//	the rules that metadata.rule names, in the drop itself, then in its inbox folder
//	else those of the keywords: the drop's folder, the inbox folder, every folder
//	all rules that are not listed: true, file by file
//
// The first yes decides; else the first maybe; else the drop is refused. A rule
// without conditions fits everything: it decides only where none said maybe before it.
// Of a folder in a catalog it says nothing, and a rule that finds what it asks for in folders inside alone says no. A rule
// that tells several objects apart takes no such folder, nor one in a drop that is split; a maybe after it does not, either.
// Rules for other kinds are not asked, so that files and folders have an order each.
//
// # metadata.rule
//
//	<root>
//	  <type>DOM</type>            stands for the folder's name
//	  <plugins>                   then no keyword is asked for
//	    <file><plugin>RULE</plugin></file>
//	    <dir><plugin>RULE</plugin></dir>
//	  </plugins>
//	</root>
//
// It is read strictly, to 64 KiB; one that is broken, or names a rule that is not
// there, makes what it concerns wait (Waits), with line and column.
//
// # Limits
//
// limits.go holds them all. Documents are read to 8 MiB; XML that declares anything is
// refused, entities are never expanded; an XPath takes 20 million moves. 50,000 names
// inside are looked at: beyond that, what was not found is unknown. The patterns of sets
// take 20 million comparisons: what would take more is unknown. Archives are listed
// by package bags, with its rules; a compressed tar of more than 64 MiB is not.
package recognise
