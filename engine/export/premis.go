package export

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"bagpipe/engine/folder"
	"bagpipe/layout"
)

const (
	premisNamespace = "http://www.loc.gov/premis/v3"
	premisSchema    = premisNamespace + " http://www.loc.gov/standards/premis/premis.xsd"
	vocabulary      = "http://id.loc.gov/vocabulary/preservation/"
)

// term is one of layout.PremisTerms.
type term string

const (
	accession  term = "accession"
	execution  term = "execution"
	replicated term = "replication"
	checked    term = "fixity check"
	recovery   term = "recovery"
)

var robotTerms = map[string]term{"unpack": "unpacking", "validate": "validation", "inventory": "message digest calculation",
	"identify": "format identification", "describe": "metadata extraction", "virus-scan": "virus check", "tag": "metadata modification",
	"quality": "validation", "views": "creation", "bag": "information package creation", "deposit": replicated, "cleanup": "deletion",
	"shelve": replicated, "publish": "dissemination"}

// term is the step's own, the robot's, or execution.
func (d *done) term() term {
	switch {
	case d.plan != nil && d.plan.Premis != "":
		return term(d.plan.Premis)
	case d.first:
		return accession
	case d.plan != nil && robotTerms[d.plan.Robot] != "":
		return robotTerms[d.plan.Robot]
	}
	return execution
}

// xmlDocument is PREMIS, or METS around it, of one item.
type xmlDocument struct {
	xmlWriter
	mets bool
}

func (x *xmlDocument) item(r *record) error {
	if err := r.load(); err != nil {
		return err
	}
	x.raw(`<?xml version="1.0" encoding="UTF-8"?>`)
	if x.mets {
		x.writeMETS(r)
	} else {
		x.writePREMIS(r)
	}
	x.raw("\n")
	return x.err
}

func (x *xmlDocument) end() error { return x.err }

func (x *xmlDocument) writePREMIS(r *record) {
	x.start("premis:premis", "xmlns:premis", premisNamespace, "xmlns:xsi", "http://www.w3.org/2001/XMLSchema-instance",
		"xsi:schemaLocation", premisSchema, "version", "3.0")
	x.objects(r)
	agents := map[string]string{} // their type by their name
	for _, d := range r.ended() {
		x.attempt(r, &d, agents)
	}
	for _, c := range r.written() {
		x.event(r, fmt.Sprintf("%s/copy/%s/v%d/%s", r.id(), c.target, c.version, stamp(c.Written)), replicated, stamp(c.Written),
			fmt.Sprintf("version %d on target %s: %s", c.version, c.target, c.Place), "success", c.Digest, "Bagpipe", agents)
	}
	onTargets, own := r.looks()
	for _, l := range onTargets {
		x.event(r, fmt.Sprintf("%s/copy/%s/v%d/fixity/%s", r.id(), l.target, l.version, stamp(l.At)), checked, stamp(l.At),
			fmt.Sprintf("version %d on target %s", l.version, l.target), l.Outcome, l.Message, "Bagpipe", agents)
	}
	for _, l := range own {
		x.event(r, r.id()+"/fixity/"+l.own+"/"+stamp(l.At), checked, stamp(l.At), strings.TrimSuffix(l.own+": "+l.Path, ": "), l.Outcome, l.Message, "Bagpipe", agents)
	}
	for _, name := range slices.Sorted(maps.Keys(agents)) {
		x.start("premis:agent")
		x.identifier("premis:agentIdentifier", agentIRI(name))
		x.text("premis:agentName", name)
		x.text("premis:agentType", agents[name], "authority", "agentType", "authorityURI", vocabulary+"agentType",
			"valueURI", vocabulary+"agentType/"+map[string]string{"software": "sof", "person": "per"}[agents[name]])
		x.stop("premis:agent")
	}
	x.stop("premis:premis")
}

// identifier writes a type and a value, as all of PREMIS' identifiers have them.
func (x *xmlDocument) identifier(name, value string, more ...string) {
	x.start(name)
	x.text(name+"Type", "URI")
	x.text(name+"Value", value)
	for _, role := range more {
		x.text(strings.TrimSuffix(name, "Identifier")+"Role", role)
	}
	x.stop(name)
}

func agentIRI(name string) string { return "bagpipe:agent/" + layout.EncodePath(name) }

func (r *record) representation() string { return r.id() + "/v" + strconv.Itoa(r.version()) }

func (r *record) fileIRI(name string) string { return r.representation() + "/" + name }

func (x *xmlDocument) objects(r *record) {
	x.start("premis:object", "xsi:type", "premis:intellectualEntity")
	x.identifier("premis:objectIdentifier", r.id())
	x.text("premis:originalName", r.Manifest.Label)
	x.stop("premis:object")
	x.start("premis:object", "xsi:type", "premis:representation")
	x.identifier("premis:objectIdentifier", r.representation())
	x.text("premis:originalName", cmp.Or(r.Manifest.Source.Name, r.Manifest.Label))
	for _, c := range r.copies() {
		if c.version == r.version() {
			x.storage(string(c.target)+":"+c.Place, "target "+string(c.target))
		}
	}
	x.relationship("structural", "represents", r.id())
	x.stop("premis:object")
	for _, name := range r.fileNames() {
		x.file(r, name, r.inventory.Files[name])
	}
}

func (x *xmlDocument) storage(location, medium string) {
	x.start("premis:storage")
	x.start("premis:contentLocation")
	x.text("premis:contentLocationType", "Bagpipe")
	x.text("premis:contentLocationValue", location)
	x.stop("premis:contentLocation")
	x.text("premis:storageMedium", medium)
	x.stop("premis:storage")
}

func (x *xmlDocument) relationship(kind, sub, iri string) {
	x.start("premis:relationship")
	x.text("premis:relationshipType", kind)
	x.text("premis:relationshipSubType", sub)
	x.identifier("premis:relatedObjectIdentifier", iri)
	x.stop("premis:relationship")
}

func (x *xmlDocument) file(r *record, name string, f layout.InventoryFile) {
	x.start("premis:object", "xsi:type", "premis:file")
	x.identifier("premis:objectIdentifier", r.fileIRI(name))
	x.start("premis:objectCharacteristics")
	for _, d := range [][2]string{{"SHA-256", f.SHA256}, {"SHA-512", f.SHA512}} {
		if d[1] == "" {
			continue
		}
		x.start("premis:fixity")
		x.text("premis:messageDigestAlgorithm", d[0])
		x.text("premis:messageDigest", d[1])
		x.stop("premis:fixity")
	}
	x.text("premis:size", strconv.FormatInt(f.Size, 10))
	x.start("premis:format")
	x.start("premis:formatDesignation")
	x.text("premis:formatName", cmp.Or(f.Format, f.Type, "application/octet-stream"))
	x.stop("premis:formatDesignation")
	if f.PUID != "" {
		x.start("premis:formatRegistry")
		x.text("premis:formatRegistryName", "PRONOM")
		x.text("premis:formatRegistryKey", f.PUID)
		x.stop("premis:formatRegistry")
	}
	if f.Warning != "" {
		x.text("premis:formatNote", f.Warning)
	}
	x.stop("premis:format")
	x.stop("premis:objectCharacteristics")
	x.text("premis:originalName", name)
	x.relationship("structural", "is part of", r.representation())
	x.stop("premis:object")
}

// event writes an event, and notes its agent.
func (x *xmlDocument) event(r *record, iri string, what term, at, detail, outcome, note, agent string, agents map[string]string) {
	if at == "" {
		return
	}
	x.start("premis:event")
	x.identifier("premis:eventIdentifier", iri)
	x.text("premis:eventType", string(what), "authority", "eventType", "authorityURI", vocabulary+"eventType", "valueURI", vocabulary+"eventType/"+layout.PremisTerms()[string(what)])
	x.text("premis:eventDateTime", at)
	x.start("premis:eventDetailInformation")
	x.text("premis:eventDetail", detail)
	x.stop("premis:eventDetailInformation")
	x.start("premis:eventOutcomeInformation")
	x.text("premis:eventOutcome", outcome)
	if note != "" {
		x.start("premis:eventOutcomeDetail")
		x.text("premis:eventOutcomeDetailNote", note)
		x.stop("premis:eventOutcomeDetail")
	}
	x.stop("premis:eventOutcomeInformation")
	if agents[agent] == "" {
		agents[agent] = "software"
	}
	x.identifier("premis:linkingAgentIdentifier", agentIRI(agent))
	x.identifier("premis:linkingObjectIdentifier", r.representation())
	x.stop("premis:event")
}

func (x *xmlDocument) attempt(r *record, d *done, agents map[string]string) {
	agent := d.By
	if agent != "" {
		agents[agent] = "person"
	} else if d.plan != nil {
		agent = engineOf(d.plan)
	}
	agent = cmp.Or(agent, "Bagpipe")
	what := d.term()
	if strings.HasPrefix(d.Message, folder.RecoveredBy) {
		what = recovery
	}
	outcome := map[string]string{"completed": "success", "skipped": "not applicable", "failed": "failure", "deferred": "tried again later"}[string(d.State)]
	x.event(r, fmt.Sprintf("%s/%s/%s/%s", r.id(), d.run, d.step, d.key), what, stamp(d.Ended), "step "+d.step+" of "+d.run,
		cmp.Or(outcome, string(d.State)), d.Message, agent, agents)
}
