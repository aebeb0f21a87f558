package export

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"bagpipe/layout"
)

// writeMETS writes METS 1.12.1 with the PREMIS in amdSec, by the conventions of E-ARK's
// CSIP, whose conformance it does not claim.
func (x *xmlDocument) writeMETS(r *record) {
	m := r.Manifest
	x.start("mets:mets", "xmlns:mets", "http://www.loc.gov/METS/", "xmlns:xlink", "http://www.w3.org/1999/xlink",
		"xmlns:dc", "http://purl.org/dc/elements/1.1/", "xmlns:xsi", "http://www.w3.org/2001/XMLSchema-instance",
		"xsi:schemaLocation", "http://www.loc.gov/METS/ http://www.loc.gov/standards/mets/mets.xsd "+premisSchema, "OBJID", r.id(), "LABEL", m.Label, "TYPE", "Mixed")
	x.start("mets:metsHdr", "CREATEDATE", m.Created.UTC().Format("2006-01-02T15:04:05Z"), "RECORDSTATUS", "COMPLETE")
	x.start("mets:agent", "ROLE", "CREATOR", "TYPE", "OTHER", "OTHERTYPE", "SOFTWARE")
	x.text("mets:name", "Bagpipe")
	x.stop("mets:agent")
	x.stop("mets:metsHdr")
	x.start("mets:dmdSec", "ID", "dmd-1")
	x.start("mets:mdWrap", "MDTYPE", "DC")
	x.start("mets:xmlData")
	x.text("dc:identifier", r.id())
	x.text("dc:title", m.Label)
	for _, key := range slices.Sorted(maps.Keys(m.Metadata)) {
		if name, is := strings.CutPrefix(key, "dc:"); is && dublinCore[name] {
			x.text("dc:"+name, fmt.Sprint(m.Metadata[key]))
		}
	}
	x.stop("mets:xmlData")
	x.stop("mets:mdWrap")
	x.stop("mets:dmdSec")
	x.start("mets:amdSec", "ID", "amd-1")
	x.start("mets:digiprovMD", "ID", "premis-1")
	x.start("mets:mdWrap", "MDTYPE", "PREMIS", "MDTYPEVERSION", "3.0")
	x.start("mets:xmlData")
	x.writePREMIS(r)
	x.stop("mets:xmlData")
	x.stop("mets:mdWrap")
	x.stop("mets:digiprovMD")
	x.stop("mets:amdSec")
	names := x.fileSection(r)
	x.start("mets:structMap", "TYPE", "PHYSICAL", "LABEL", "CSIP", "ID", "struct-1")
	x.start("mets:div", "LABEL", cmp.Or(m.Label, string(m.Item)), "DMDID", "dmd-1", "ADMID", "premis-1")
	x.start("mets:div", "LABEL", "Representations/v"+strconv.Itoa(r.version()))
	for i := range names {
		x.empty("mets:fptr", "FILEID", fileID(i))
	}
	x.stop("mets:div")
	x.stop("mets:div")
	x.stop("mets:structMap")
	x.stop("mets:mets")
}

var dublinCore = map[string]bool{"contributor": true, "coverage": true, "creator": true, "date": true, "description": true, "format": true,
	"language": true, "publisher": true, "relation": true, "rights": true, "source": true, "subject": true, "title": true, "type": true}

func fileID(i int) string { return "file-" + strconv.Itoa(i+1) }

// fileSection lists the files of the inventory, and gives their names in its order.
func (x *xmlDocument) fileSection(r *record) (names []string) {
	names = r.fileNames()
	if len(names) == 0 {
		return nil
	}
	x.start("mets:fileSec", "ID", "files-1")
	x.start("mets:fileGrp", "ID", "group-1", "USE", "Representations/v"+strconv.Itoa(r.version()))
	for i, name := range names {
		f := r.inventory.Files[name]
		x.start("mets:file", "ID", fileID(i), "MIMETYPE", cmp.Or(f.Type, "application/octet-stream"), "SIZE", strconv.FormatInt(f.Size, 10),
			"CHECKSUM", f.SHA512, "CHECKSUMTYPE", "SHA-512")
		x.empty("mets:FLocat", "LOCTYPE", "URL", "xlink:type", "simple", "xlink:href", "content/"+reference(name))
		x.stop("mets:file")
	}
	x.stop("mets:fileGrp")
	x.stop("mets:fileSec")
	return names
}

// reference is a path of the inventory as a relative URL.
func reference(name string) string {
	path, err := layout.DecodePath(name)
	if err != nil {
		path = name
	}
	parts := strings.Split(path, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return strings.Join(parts, "/")
}
