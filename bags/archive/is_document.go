package archive

import (
	"encoding/binary"
	"path/filepath"
	"strings"
)

// documentExtensions are the archives that people open rather than unpack.
var documentExtensions = map[string]bool{
	".docx": true, ".docm": true, ".dotx": true, ".xlsx": true, ".xlsm": true, ".xltx": true, ".xlsb": true,
	".pptx": true, ".pptm": true, ".potx": true, ".ppsx": true, ".vsdx": true, ".odt": true, ".ods": true,
	".odp": true, ".odg": true, ".odf": true, ".odb": true, ".ott": true, ".ots": true, ".otp": true,
	".epub": true, ".jar": true, ".war": true, ".ear": true, ".apk": true, ".aab": true, ".xpi": true,
	".whl": true, ".nupkg": true, ".kmz": true, ".cbz": true, ".cbr": true, ".cb7": true, ".cbt": true, ".idml": true, ".sketch": true, ".3mf": true,
	".usdz": true, ".pages": true, ".numbers": true, ".key": true, ".wacz": true, ".siard": true, ".oxps": true,
	".xps": true, ".mpp": true, ".qgz": true, ".fcstd": true, ".kra": true, ".ora": true, ".aip": true,
}

// isDocument decides by the extension, or by the first member's name: OpenDocument
// and EPUB begin with "mimetype", Office Open XML with "[Content_Types].xml".
func isDocument(name string, head []byte) bool {
	if documentExtensions[strings.ToLower(filepath.Ext(name))] {
		return true
	}
	if len(head) < 30 || string(head[:4]) != "PK\x03\x04" {
		return false
	}
	n := int(binary.LittleEndian.Uint16(head[26:]))
	if 30+n > len(head) {
		return false
	}
	first := string(head[30 : 30+n])
	return first == "mimetype" || first == "[Content_Types].xml"
}
