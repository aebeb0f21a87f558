// Package templates embeds the files a new workspace starts with: the settings,
// the shipped workflow definitions with the JSON Schema that lets editors complete
// them, the recognition rules with theirs, the JSON Schema of named queues, the hook of its
// repository, the templates of feeds, and the pages of the web.
//
// It owns their text. It must not hold logic. It has no state.
package templates

import "embed"

// Workspace holds the files of a new workspace under their own paths.
//
//go:embed bagpipe.yaml workflows rules
var Workspace embed.FS

// Hooks holds the hooks of a workspace's repository: hooks/pre-receive is asked before a push
// lands, hooks/post-receive is told after. For PROGRAM stands the path of the bagpipe program,
// as a word of a shell. A workspace whose program is gone takes pushes as it did: what is
// broken in them does not come into force.
//
//go:embed hooks
var Hooks embed.FS

// Feeds holds the templates of activity feeds: feeds/bagpipe/generic.FORMAT.tmpl and others.
//
//go:embed feeds
var Feeds embed.FS

// Web holds the pages: web/layout.html and web/parts.html, which they share, web/pages, and
// web/static, which browsers load (htmx 2.0.6 among it, with its license).
//
//go:embed web
var Web embed.FS

//go:embed workflows/workflow.schema.json
var workflowSchema []byte

// WorkflowSchema is the JSON Schema of a workflow definition.
func WorkflowSchema() []byte { return workflowSchema }

//go:embed queues/queue.schema.json
var queueSchema []byte

// QueueSchema is the JSON Schema of a named queue.
func QueueSchema() []byte { return queueSchema }

//go:embed rules/rule.schema.json
var ruleSchema []byte

// RuleSchema is the JSON Schema of a rule file.
func RuleSchema() []byte { return ruleSchema }
