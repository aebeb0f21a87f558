package files

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// A Folder folds case and Unicode normalisation away: two names with one fold are one
// file on Windows or macOS.
type Folder struct{ caser cases.Caser }

// NewFolder gives a Folder for one goroutine.
func NewFolder() Folder { return Folder{cases.Fold()} }

// Fold gives the fold of a path.
func (f Folder) Fold(p string) string {
	if IsPlain(p) {
		return strings.ToLower(p)
	}
	return norm.NFC.String(f.caser.String(norm.NFC.String(p)))
}

// IsPlain reports whether p is ASCII: most names are, and folding them is cheap.
func IsPlain(p string) bool {
	for i := range len(p) {
		if p[i] >= 0x80 {
			return false
		}
	}
	return true
}

// windowsPath is the characters Windows allows in a path (RFC 8493, 6.1.2).
const windowsPath = 255

// WindowsHostile gives the reason why Windows could not hold this path, or "".
func WindowsHostile(p string) string {
	if len(p) > windowsPath && utf8.RuneCountInString(p) > windowsPath {
		return "is longer than the 255 characters of a path on Windows"
	}
	for part := range strings.SplitSeq(p, "/") {
		if strings.ContainsAny(part, `<>:"\|?*`) {
			return "has a character Windows does not allow"
		}
		if strings.HasSuffix(part, ".") && part != "." || strings.HasSuffix(part, " ") {
			return "ends in a dot or space, which Windows drops"
		}
		if part != "" && strings.IndexByte("CPANLcpanl", part[0]) >= 0 && isDevice(part) {
			return "is a device's name on Windows"
		}
	}
	return ""
}

// isDevice takes a name with any ending, and with spaces before it: CON, con.txt. The
// digits may be raised: in Windows' own code page they are digits, too.
func isDevice(name string) bool {
	stem, _, _ := strings.Cut(name, ".")
	stem = strings.ToUpper(strings.TrimRight(stem, " "))
	switch stem {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$":
		return true
	}
	digit, isPort := strings.CutPrefix(stem, "COM")
	if !isPort {
		digit, isPort = strings.CutPrefix(stem, "LPT")
	}
	return isPort && (len(digit) == 1 && '1' <= digit[0] && digit[0] <= '9' || digit == "¹" || digit == "²" || digit == "³")
}
