package tagfile

import (
	"path"
	"strings"
)

// The names of the specification.
const (
	DeclarationFile = "bagit.txt"
	InfoFile        = "bag-info.txt"
	OldInfoFile     = "package-info.txt" // until 0.95
	FetchName       = "fetch.txt"
	PayloadDir      = "data"
	PayloadPrefix   = PayloadDir + "/"
	ManifestPrefix  = "manifest-"
	TagPrefix       = "tagmanifest-"
)

// IsSpecified reports whether p may be a tag file that has to be read.
func IsSpecified(p string) bool {
	dir, name := path.Split(p)
	if strings.Count(dir, "/") > 1 {
		return false
	}
	switch name {
	case DeclarationFile, InfoFile, OldInfoFile, FetchName:
		return true
	}
	_, isManifest := ManifestAlgorithm(name, ManifestPrefix)
	_, isTag := ManifestAlgorithm(name, TagPrefix)
	return isManifest || isTag
}
