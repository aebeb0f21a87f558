package layout

import (
	"encoding/json"
	"fmt"
)

const siteSchema = 1

// SitesBranches begins the name of the branch that a site alone writes: site/NAME.
const SitesBranches = "site/"

// OffersBranches begins the name of a branch that asks to be joined: for/NAME.
const OffersBranches = "for/"

// AnchorTags begins the name of a tag that stands for a history: anchor/SITE/TIME.
const AnchorTags = "anchor/"

// AnchorsDir holds what authorities said of anchors: anchors/SITE/TIME.tsr.
const AnchorsDir = "anchors"

// SignersFile lists the keys whose signatures count, as ssh-keygen reads it.
const SignersFile = "trust/allowed_signers"

// SitePath is where a site is known by its name.
func SitePath(name Name) string { return SitesDir + "/" + string(name) + ".json" }

// Site is sites/NAME.json: one workspace of those that share a history. Of two workspaces
// under one name the mark tells them apart.
type Site struct {
	Schema int  `json:"schema"`
	Name   Name `json:"name"`
	Mark   Mark `json:"mark"`
	// Clone says that it was begun as a copy: what bears no site's name is not its own.
	Clone bool `json:"clone,omitempty"`
	// Key is the public SSH key by which its commits are signed; "": they are not. Whether a
	// signature counts trust/allowed_signers says.
	Key string `json:"key,omitempty"`
}

// DecodeSite reads sites/NAME.json; a newer schema is a *SchemaError.
func DecodeSite(data []byte) (Site, error) {
	var s Site
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("read %s: %w", SitesDir, err)
	}
	if s.Schema > siteSchema {
		return s, &SchemaError{File: SitesDir, Schema: s.Schema, Known: siteSchema}
	}
	return s, nil
}

// Encode writes s over old (nil for a new one); fields s does not know survive.
func (s Site) Encode(old []byte) ([]byte, error) {
	s.Schema = siteSchema
	return RewriteJSON(old, s)
}
