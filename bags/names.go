package bags

import (
	"path"
	"strings"
)

// The names of the specification.
const (
	declarationFile = "bagit.txt"
	infoFile        = "bag-info.txt"
	oldInfoFile     = "package-info.txt" // until 0.95
	fetchName       = "fetch.txt"
	payloadDir      = "data"
	payloadPrefix   = payloadDir + "/"
	manifestPrefix  = "manifest-"
	tagPrefix       = "tagmanifest-"
)

// isSpecified tells whether p may be a tag file that has to be read.
func isSpecified(p string) bool {
	dir, name := path.Split(p)
	if strings.Count(dir, "/") > 1 {
		return false
	}
	switch name {
	case declarationFile, infoFile, oldInfoFile, fetchName:
		return true
	}
	_, isManifest := manifestAlgorithm(name, manifestPrefix)
	_, isTag := manifestAlgorithm(name, tagPrefix)
	return isManifest || isTag
}
