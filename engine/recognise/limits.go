package recognise

import "time"

// What a rule file may hold.
const (
	maxRules   = 500       // in a file
	maxRegexps = 300       // in a file
	maxRegexp  = 2000      // bytes of one
	maxProgram = 10_000    // steps of one, compiled
	maxGlob    = 500       // bytes of a pattern
	maxPath    = 1000      // bytes of an XPath or gjson path
	maxDepth   = 8         // of all, any and not
	maxValues  = 100       // identifiers, metadata: keys of each
	maxOrder   = 1_000_000 // and its negative
)

// What is looked at of a drop.
const (
	maxNames    = 50_000   // inside a folder or an archive
	maxHeads    = 200      // files inside whose MIME type is looked at
	maxDocument = 8 << 20  // bytes of an XML or JSON file
	maxXMLDepth = 200      // elements in one another
	maxNodes    = 500_000  // elements, attributes and texts
	maxRuleFile = 64 << 10 // bytes of a metadata.rule
	mimeHead    = 3072     // bytes that the MIME type is told by
	listTime    = 30 * time.Second
	listStream  = 64 << 20 // bytes of a compressed tar, which has no directory: it is read whole
	listBytes   = 32 << 30 // what an archive that is listed may unpack to
	listAtOnce  = 4
)

// What is kept of the outcome.
const (
	maxTried      = 100 // rules
	maxReason     = 200 // bytes
	maxLabel      = 500
	maxIdentifier = 200
	maxText       = 1000 // bytes of a value of the metadata
	maxObjects    = 100  // names
)
