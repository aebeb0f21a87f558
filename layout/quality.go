package layout

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
)

const qualitySchema = 1

// QualityJSON is the record of what the checks of an item's present version found:
//
//	{
//	  "checks": {
//	    "opens": {"at": "…", "by": "inspect.1-5c1e9a70", "level": "total.usable", "result": "pass", "rule": "scans", "workflow": "accession"},
//	    "date": {"level": "metadata.business.items", "result": "not-reached", "rule": "scans"}
//	  },
//	  "item": "3fa9c0d2e1b7a45",
//	  "levels": {"total": "pass", "total.usable": "pass", …},
//	  "more": 100,
//	  "result": "not-reached",
//	  "schema": 1,
//	  "unlisted": {"accession/inspect": {"data.records": {"pass": 98, "warn": 2}}},
//	  "version": 1
//	}
const QualityJSON = "quality.json"

// Results of checks and levels.
const (
	QualityPass       = "pass"
	QualityWarn       = "warn"
	QualityFail       = "fail"
	QualityNotReached = "not-reached"    // what came before broke off
	QualityNone       = "not-applicable" // nothing is asked
)

// qualityRank orders results: of several the worst counts, and none passes over what was not
// reached.
var qualityRank = []string{QualityNone, QualityPass, QualityWarn, QualityNotReached, QualityFail}

// QualityLevels are the levels that checks are of.
func QualityLevels() []string {
	return []string{"total.usable", "total.named", "data.complete", "data.valid", "data.records", "metadata.business.complete",
		"metadata.business.valid", "metadata.business.items", "metadata.data.format", "metadata.data.items"}
}

// AllQualityLevels are these and the levels above them, each before what is below it.
func AllQualityLevels() (all []string) {
	for _, level := range QualityLevels() {
		for i := range level {
			if at := level[:i]; level[i] == '.' && !slices.Contains(all, at) {
				all = append(all, at)
			}
		}
		all = append(all, level)
	}
	return all
}

// QualityResults are all results, the worst last.
func QualityResults() []string { return slices.Clone(qualityRank) }

// IsQualityResult reports whether a check may end so.
func IsQualityResult(s string) bool { return slices.Contains(qualityRank, s) }

// QualityCheck is one check.
type QualityCheck struct {
	Level  string    `json:"level"`
	Result string    `json:"result"`
	Text   string    `json:"text,omitempty"`
	At     time.Time `json:"at,omitzero"`
	By     string    `json:"by,omitempty"`   // STEP.ATTEMPT
	Rule   string    `json:"rule,omitempty"` // the file of rules that asks for it; "": a robot told it

	Workflow string `json:"workflow,omitempty"` // whose step made it, without the instance's number
}

// step is the step whose attempt made the check; "": it was not reached.
func (c QualityCheck) step() string { return c.By[:max(strings.LastIndexByte(c.By, '.'), 0)] }

// Maker is the step whose attempt made the check, and the attempt; "": it was not reached.
func (c QualityCheck) Maker() (step string, key AttemptKey) {
	step = c.step()
	key, err := ParseAttemptKey(strings.TrimPrefix(c.By, step+"."))
	if err != nil {
		return "", AttemptKey{}
	}
	return step, key
}

// MadeBy reports whether a step of a workflow made the check; of an older record that names no workflow, of any.
func (c QualityCheck) MadeBy(workflow, step string) bool {
	return c.step() == step && (c.Workflow == "" || c.Workflow == workflow)
}

// isOf reports whether the teller of another check, a file of rules or a step, told this one.
func (c QualityCheck) isOf(other QualityCheck) bool {
	return c.Rule == other.Rule && (c.Rule != "" || c.MadeBy(other.Workflow, other.step()))
}

// teller is whose the check is: RULES of a file of rules, or WORKFLOW/STEP.
func (c QualityCheck) teller() string {
	return cmp.Or(c.Rule, tellerOf(c.Workflow, c.step()))
}

func tellerOf(workflow, step string) string { return workflow + "/" + step }

// Quality is quality.json.
type Quality struct {
	Schema  int                     `json:"schema"`
	Item    ItemID                  `json:"item"`
	Version int                     `json:"version"`
	Result  string                  `json:"result"`
	Levels  map[string]string       `json:"levels"`
	Checks  map[string]QualityCheck `json:"checks"`
	More    int                     `json:"more,omitempty"` // checks that are not listed, and count

	// Unlisted are the checks that are not listed: of each teller how many of a level ended how.
	Unlisted map[string]map[string]map[string]int `json:"unlisted,omitempty"`
}

// QualitySummary is what the manifest says of quality.json, for conditions.
type QualitySummary struct {
	Result string            `json:"result"`
	Levels map[string]string `json:"levels"`
	Counts map[string]int    `json:"counts"` // checks by result
}

// Bounds keep quality.json below 256 KiB.
const (
	mostChecks    = 500
	mostCheckText = 200
)

// Note records a check, in the place of an earlier one of its name and teller. Beside one of
// another teller it goes by the name of its file of rules, or of its step, and its own.
func (q *Quality) Note(id string, c QualityCheck) {
	for was, there := q.Checks[id]; there && !was.isOf(c); was, there = q.Checks[id] {
		id = cmp.Or(c.Rule, c.step()) + "/" + id
	}
	if q.Checks == nil {
		q.Checks = map[string]QualityCheck{}
	}
	c.Text = QualityText(c.Text)
	q.Checks[id] = c
}

// QualityText is the text of a check as it is recorded.
func QualityText(s string) string {
	if len(s) > mostCheckText {
		return strings.ToValidUTF8(s[:mostCheckText], "") + "…"
	}
	return s
}

// ForgetRules takes back what rules asked for, and what a step told, and reports whether there was anything.
func (q *Quality) ForgetRules(workflow, step string) (any bool) {
	before := len(q.Checks) + len(q.Unlisted)
	maps.DeleteFunc(q.Checks, func(_ string, c QualityCheck) bool { return c.Rule != "" || c.By == "" || c.MadeBy(workflow, step) })
	maps.DeleteFunc(q.Unlisted, func(teller string, _ map[string]map[string]int) bool {
		return !strings.Contains(teller, "/") || teller == tellerOf(workflow, step)
	})
	return len(q.Checks)+len(q.Unlisted) != before
}

// ForgetUnlisted takes back those checks of a step that are not listed, as it tells all of its checks again.
func (q *Quality) ForgetUnlisted(workflow, step string) {
	delete(q.Unlisted, tellerOf(workflow, step))
}

// bound leaves the worst checks in the list, and counts the others.
func (q *Quality) bound() {
	ids := slices.Collect(maps.Keys(q.Checks))
	slices.SortFunc(ids, func(a, b string) int {
		return cmp.Or(slices.Index(qualityRank, q.Checks[b].Result)-slices.Index(qualityRank, q.Checks[a].Result), cmp.Compare(a, b))
	})
	for _, id := range ids[min(len(ids), mostChecks):] {
		c := q.Checks[id]
		delete(q.Checks, id)
		if q.Unlisted == nil {
			q.Unlisted = map[string]map[string]map[string]int{}
		}
		if q.Unlisted[c.teller()] == nil {
			q.Unlisted[c.teller()] = map[string]map[string]int{}
		}
		if q.Unlisted[c.teller()][c.Level] == nil {
			q.Unlisted[c.teller()][c.Level] = map[string]int{}
		}
		q.Unlisted[c.teller()][c.Level][c.Result]++
	}
}

// Has reports whether a check of a file of rules is noted, whether its name was ambiguous or not, or may be, as not all
// that the file asks for are listed.
func (q *Quality) Has(rule, id string) bool {
	if q.Unlisted[rule] != nil {
		return true
	}
	for noted, c := range q.Checks {
		if c.Rule == rule && path.Base(noted) == path.Base(id) {
			return true
		}
	}
	return false
}

// Reckon fills in the levels and the result, and gives the summary. Of very many checks some are not listed from then on.
func (q *Quality) Reckon() QualitySummary {
	q.bound()
	q.Levels, q.Result, q.More = map[string]string{}, QualityNone, 0
	counts := map[string]int{}
	for _, result := range qualityRank {
		counts[result] = 0
	}
	for _, level := range AllQualityLevels() {
		q.Levels[level] = QualityNone
	}
	count := func(level, result string, n int) {
		counts[result] += n
		q.Result = worse(q.Result, result)
		for at := level; at != ""; at = levelAbove(at) {
			q.Levels[at] = worse(q.Levels[at], result)
		}
	}
	for _, c := range q.Checks {
		count(c.Level, c.Result, 1)
	}
	for _, levels := range q.Unlisted {
		for level, results := range levels {
			for result, n := range results {
				count(level, result, n)
				q.More += n
			}
		}
	}
	return QualitySummary{Result: q.Result, Levels: maps.Clone(q.Levels), Counts: counts}
}

func levelAbove(level string) string {
	i := strings.LastIndexByte(level, '.')
	return level[:max(i, 0)]
}

func worse(a, b string) string {
	if slices.Index(qualityRank, b) > slices.Index(qualityRank, a) {
		return b
	}
	return a
}

// DecodeQuality reads quality.json; a newer schema is a *SchemaError.
func DecodeQuality(data []byte) (q Quality, err error) {
	if err := json.Unmarshal(data, &q); err != nil {
		return q, fmt.Errorf("read %s: %w", QualityJSON, err)
	}
	if q.Schema > qualitySchema {
		return q, &SchemaError{File: QualityJSON, Schema: q.Schema, Known: qualitySchema}
	}
	return q, nil
}

// Encode writes the record.
func (q Quality) Encode() ([]byte, error) {
	q.Schema = qualitySchema
	out, err := EncodeJSON(q)
	if err != nil {
		return nil, fmt.Errorf("write %s of %s: %w", QualityJSON, q.Item, err)
	}
	return out, nil
}
