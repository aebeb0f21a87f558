package target

import (
	"path"
	"strconv"
	"strings"

	"bagpipe/layout"
)

// Place is where the first bag of an item's version belongs, below a target's root.
func Place(item layout.ItemID, version int) string {
	fan := strings.TrimPrefix(layout.ItemDir(item), layout.ItemsDir+"/")
	if version > 1 {
		fan += "-v" + strconv.Itoa(version)
	}
	return fan
}

// Revision is the place of revision n of the bag whose first has the place first.
func Revision(first string, n int) string {
	if n == 1 {
		return first
	}
	return first + "-r" + strconv.Itoa(n)
}

// ParsePlace reads the last part of a place, ID[-vN][-rN]; is reports whether it is one.
func ParsePlace(base string) (item layout.ItemID, version, revision int, is bool) {
	id, rest, more := strings.Cut(base, "-")
	item, err := layout.ParseItemID(id)
	if err != nil {
		return "", 0, 0, false
	}
	version, revision = 1, 1
	for part := ""; more; {
		part, rest, more = strings.Cut(rest, "-")
		if part == "" {
			return "", 0, 0, false
		}
		n, err := strconv.Atoi(part[1:])
		switch {
		case err != nil || n < 2:
			return "", 0, 0, false
		case part[0] == 'v' && version == 1 && revision == 1:
			version = n
		case part[0] == 'r' && revision == 1:
			revision = n
		default:
			return "", 0, 0, false
		}
	}
	return item, version, revision, path.Base(Revision(Place(item, version), revision)) == base
}

// staged is the name that a copy is made under.
func staged(at string) string { return path.Dir(at) + "/." + path.Base(at) + ".part" }

// aside is the name that a damaged copy has until a sound one stands in its place.
func aside(at string) string { return path.Dir(at) + "/." + path.Base(at) + ".damaged" }
