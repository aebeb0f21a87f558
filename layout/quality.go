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
//	    "opens": {"at": "…", "by": "inspect.1-5c1e9a70", "level": "total.usable", "result": "pass", "rule": "scans"},
//	    "date": {"level": "metadata.business.items", "result": "not-reached", "rule": "scans"}
//	  },
//	  "item": "3fa9c0d2e1b7a45",
//	  "levels": {"total": "pass", "total.usable": "pass", …},
//	  "result": "not-reached",
//	  "schema": 1,
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
}

// teller is whose the check is: of the file of rules, or of the step.
func (c QualityCheck) teller() string {
	return cmp.Or(c.Rule, c.Step())
}

// Step is the step whose attempt made the check; "": it was not reached.
func (c QualityCheck) Step() string { return c.By[:max(strings.LastIndexByte(c.By, '.'), 0)] }

// Quality is quality.json.
type Quality struct {
	Schema  int                     `json:"schema"`
	Item    ItemID                  `json:"item"`
	Version int                     `json:"version"`
	Result  string                  `json:"result"`
	Levels  map[string]string       `json:"levels"`
	Checks  map[string]QualityCheck `json:"checks"`
	More    int                     `json:"more,omitempty"` // checks that are not listed
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
// another teller it goes by its teller's name and its own.
func (q *Quality) Note(id string, c QualityCheck) {
	for was, there := q.Checks[id]; there && (was.Rule != c.Rule || c.Rule == "" && was.Step() != c.Step()); was, there = q.Checks[id] {
		id = c.teller() + "/" + id
	}
	if q.Checks == nil {
		q.Checks = map[string]QualityCheck{}
	}
	if len(c.Text) > mostCheckText {
		c.Text = strings.ToValidUTF8(c.Text[:mostCheckText], "") + "…"
	}
	if _, there := q.Checks[id]; !there && len(q.Checks) >= mostChecks {
		q.More++
		return
	}
	q.Checks[id] = c
}

// Has reports whether a check of a file of rules is noted, whether its name was ambiguous or not.
func (q *Quality) Has(rule, id string) bool {
	for noted, c := range q.Checks {
		if c.Rule == rule && path.Base(noted) == path.Base(id) {
			return true
		}
	}
	return false
}

// Reckon fills in the levels and the result, and gives the summary.
func (q *Quality) Reckon() QualitySummary {
	q.Levels, q.Result = map[string]string{}, QualityNone
	counts := map[string]int{}
	for _, result := range qualityRank {
		counts[result] = 0
	}
	for _, level := range QualityLevels() {
		for at := level; at != ""; at = above(at) {
			if q.Levels[at] == "" {
				q.Levels[at] = QualityNone
			}
		}
	}
	for _, c := range q.Checks {
		counts[c.Result]++
		q.Result = worse(q.Result, c.Result)
		for at := c.Level; at != ""; at = above(at) {
			q.Levels[at] = worse(q.Levels[at], c.Result)
		}
	}
	return QualitySummary{Result: q.Result, Levels: maps.Clone(q.Levels), Counts: counts}
}

func above(level string) string {
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
