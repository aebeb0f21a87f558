package settings

import (
	"fmt"
	"time"

	"bagpipe/engine/inbox"
	"bagpipe/layout"
)

// DropSettings say when the drops of an inbox folder are whole, and what is done
// with them.
type DropSettings struct {
	Quiet      layout.Duration  `yaml:"quiet"`
	Ignore     []string         `yaml:"ignore"`
	Complete   string           `yaml:"complete"` // quiet, marker or list
	Markers    []string         `yaml:"markers"`
	Lists      []string         `yaml:"lists"`
	Growing    layout.Duration  `yaml:"growing"`
	Batches    string           `yaml:"batches"`    // folders: each is one; "", none
	BatchQuiet *layout.Duration `yaml:"batchQuiet"` // nil: as all; 0: never
	Duplicates string           `yaml:"duplicates"` // reject, flag or allow
	Sets       string           `yaml:"sets"`       // join: files that belong together are one drop; apart

	Metadata *MetadataSettings `yaml:"metadata"` // of side-cars; nil: none are read
}

const (
	BatchFolders = "folders"
	setsApart    = "apart"
)

func (d DropSettings) check(y *layout.YAML, at string) error {
	for i, p := range d.Ignore {
		if !layout.ValidPattern(p) {
			return y.Errorf(fmt.Sprintf("%s.ignore[%d]", at, i), "expected a pattern such as *.part, not %q", p)
		}
	}
	for i, p := range d.Lists {
		if !layout.ValidPattern(p) {
			return y.Errorf(fmt.Sprintf("%s.lists[%d]", at, i), "expected a pattern such as *.sha256, not %q", p)
		}
	}
	for i, m := range d.Markers {
		if err := inbox.CheckMarker(m); err != nil {
			return y.Errorf(fmt.Sprintf("%s.markers[%d]", at, i), "%v", err)
		}
	}
	switch d.Complete {
	case "", "quiet", inbox.ByMarker, inbox.ByList:
	default:
		return y.Errorf(at+".complete", "expected quiet, marker or list, not %q", d.Complete)
	}
	if d.Complete == inbox.ByMarker && d.Markers != nil && len(d.Markers) == 0 {
		return y.Errorf(at+".markers", "complete: marker needs one")
	}
	switch d.Duplicates {
	case "", dupAllow, DupFlag, DupReject:
	default:
		return y.Errorf(at+".duplicates", "expected reject, flag or allow, not %q", d.Duplicates)
	}
	if err := d.Metadata.check(y, at+".metadata"); err != nil {
		return err
	}
	switch d.Sets {
	case "", "join", setsApart:
	default:
		return y.Errorf(at+".sets", "expected join or apart, not %q", d.Sets)
	}
	switch d.Batches {
	case "", "none", BatchFolders:
	default:
		return y.Errorf(at+".batches", "expected folders or none, not %q", d.Batches)
	}
	return nil
}

// over lays the settings of a collection over those of all.
func (d *DropSettings) over(all DropSettings) DropSettings {
	if d == nil {
		return all
	}
	out := all
	set(&out.Quiet, d.Quiet)
	set(&out.Complete, d.Complete)
	set(&out.Growing, d.Growing)
	set(&out.Batches, d.Batches)
	set(&out.BatchQuiet, d.BatchQuiet)
	set(&out.Duplicates, d.Duplicates)
	set(&out.Sets, d.Sets)
	set(&out.Metadata, d.Metadata)
	for to, from := range map[*[]string][]string{&out.Ignore: d.Ignore, &out.Markers: d.Markers, &out.Lists: d.Lists} {
		if from != nil {
			*to = from
		}
	}
	return out
}

func set[T comparable](to *T, from T) {
	var zero T
	if from != zero {
		*to = from
	}
}

func (d DropSettings) Settling() inbox.Settling {
	complete := d.Complete
	if complete == "quiet" {
		complete = inbox.ByQuiet
	}
	var batch time.Duration
	if d.BatchQuiet != nil {
		batch = time.Duration(*d.BatchQuiet)
	}
	return inbox.Settling{
		Quiet: time.Duration(d.Quiet), Ignore: d.Ignore, Complete: complete, Markers: d.Markers, Lists: d.Lists,
		Growing: time.Duration(d.Growing), Batches: d.Batches == BatchFolders, BatchQuiet: batch, Sidecars: d.Metadata != nil, Apart: d.Sets == setsApart,
	}
}

const openCollections = "open"

// MetadataSettings say how side-cars are read.
type MetadataSettings struct {
	Map         map[string]string `yaml:"map"`         // names in the manifest, by theirs; "": left out
	Only        bool              `yaml:"only"`        // what is not in map is left out
	Identifiers map[string]string `yaml:"identifiers"` // fields that identify the item, by kind
	Broken      string            `yaml:"broken"`      // reject or flag
}

const BrokenFlag = "flag"

func (s *MetadataSettings) check(y *layout.YAML, at string) error {
	if s == nil {
		return nil
	}
	if s.Broken != "" && s.Broken != "reject" && s.Broken != BrokenFlag {
		return y.Errorf(at+".broken", "expected reject or flag, not %q", s.Broken)
	}
	for kind := range s.Identifiers {
		if _, err := layout.ParseName(kind); err != nil {
			return y.Errorf(at+".identifiers", "%v", err)
		}
	}
	return nil
}

// Policies on duplicates.
const (
	dupAllow  = "allow"  // an item like any other; nothing is looked for
	DupFlag   = "flag"   // an item that says of which it is a duplicate
	DupReject = "reject" // set aside
)
