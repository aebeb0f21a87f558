package bags

import (
	"cmp"
	"slices"

	"bagpipe/bags/archive"
	"bagpipe/bags/files"
	"bagpipe/bags/finding"
	"bagpipe/bags/tagfile"
)

// Report answers for a whole bag.
type Report struct {
	Bag        string            `json:"bag"`
	Version    string            `json:"version,omitempty"` // as declared
	Encoding   string            `json:"encoding,omitempty"`
	Archive    archive.Format    `json:"archive,omitempty"`  // what the bag is serialized as
	Profiles   []string          `json:"profiles,omitempty"` // identifiers of those it was held to
	Level      Level             `json:"level"`
	Complete   bool              `json:"complete"`
	Valid      bool              `json:"valid"`
	Algorithms []files.Algorithm `json:"algorithms,omitempty"` // of the payload manifests
	Counts
	Info     []tagfile.Field   `json:"info,omitempty"`
	Errors   int               `json:"errors"`
	Warnings int               `json:"warnings"`
	Findings []finding.Finding `json:"findings"`
}

// Counts are of the files that are there.
type Counts struct {
	PayloadFiles int64 `json:"payloadFiles"`
	PayloadBytes int64 `json:"payloadBytes"`
	TagFiles     int64 `json:"tagFiles"`
}

// FirstError gives the first error in the report's order, if there is one.
func (r *Report) FirstError() (finding.Finding, bool) {
	for _, f := range r.Findings {
		if f.Severity == finding.Error {
			return f, true
		}
	}
	return finding.Finding{}, false
}

// Incomplete reports whether nothing is wrong but that files are still to be
// fetched.
func (r *Report) Incomplete() bool {
	return !slices.ContainsFunc(r.Findings, func(f finding.Finding) bool {
		return f.Severity == finding.Error && f.Code != finding.Unfetched
	})
}

// rank puts a wrong Payload-Oxum behind what names the file: a missing file is
// nearly always its cause.
func rank(f finding.Finding) int {
	if f.Code == finding.Oxum {
		return 1
	}
	if f.Code == finding.More {
		return 2
	}
	return 0
}

// settle sorts the findings, errors first and then by path, and answers.
func (r *Report) settle() {
	slices.SortStableFunc(r.Findings, func(a, b finding.Finding) int {
		return cmp.Or(cmp.Compare(a.Severity, b.Severity), cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Code, b.Code), cmp.Compare(a.Text, b.Text))
	})
	complete := true
	for _, f := range r.Findings {
		if f.Severity == finding.Warning {
			r.Warnings++
			continue
		}
		r.Errors++
		complete = complete && (f.Code == finding.Mismatch || f.Code == finding.Profile)
	}
	r.Complete = complete && r.Level != Quick
	r.Valid = r.Errors == 0 && r.Level == Full
}
