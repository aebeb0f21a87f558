package archive

import (
	"fmt"
	"time"

	"bagpipe/bags/files"
)

// Limits bound what an archive may become. A zero field means its default.
type Limits struct {
	Files      int64         // members, folders included; default 1,000,000
	Bytes      int64         // all files together; default 1 TiB
	FileBytes  int64         // one file; default 1 TiB
	Ratio      int64         // bytes written per byte of archive, once ratioFloor is passed; default 200
	PathLength int           // bytes of one member's path; default 2,048
	Depth      int           // folders above a member; default 64
	Memory     int64         // bytes a decoder may hold; default 1 GiB
	Time       time.Duration // from the first byte to the last; default 12 hours

	ratioFloor int64 // tests lower it
}

// ratioFloor is the size that any archive may unpack to: small texts compress far
// better than 200 to 1, and this much fills no disk.
const ratioFloor = 64 << 20

const maxNameBytes = 255

// WithDefaults gives the limits with every zero field set.
func (l Limits) WithDefaults() Limits {
	return Limits{
		Files: orDefault(l.Files, 1_000_000), Bytes: orDefault(l.Bytes, 1<<40), FileBytes: orDefault(l.FileBytes, 1<<40),
		Ratio: orDefault(l.Ratio, 200), PathLength: orDefault(l.PathLength, 2048), Depth: orDefault(l.Depth, 64),
		Memory: orDefault(l.Memory, 1<<30), Time: orDefault(l.Time, 12*time.Hour), ratioFloor: orDefault(l.ratioFloor, ratioFloor),
	}
}

// orDefault gives a limit, or its default where none was set: 0, or below.
func orDefault[N int | int64 | time.Duration](limit, byDefault N) N {
	if limit > 0 {
		return limit
	}
	return byDefault
}

// MostExpanded is how many bytes an archive of a size can be unpacked to before a limit
// refuses it.
func (l Limits) MostExpanded(packed int64) int64 {
	l = l.WithDefaults()
	if packed > (l.Bytes-l.ratioFloor)/l.Ratio {
		return l.Bytes
	}
	return l.ratioFloor + packed*l.Ratio
}

// overBytes tells which limit a total of written bytes breaks, if any.
func (l Limits) overBytes(total, input int64) (files.Rule, string) {
	if total > l.Bytes {
		return files.RuleBytes, fmt.Sprintf("the archive unpacks to more than %d bytes", l.Bytes)
	}
	if total > l.ratioFloor && total/l.Ratio > input {
		return files.RuleRatio, fmt.Sprintf("the archive unpacks to more than %d times its size", l.Ratio)
	}
	return "", ""
}

// OverFile gives the rule that one file of this size breaks, if any.
func (l Limits) OverFile(size int64) (files.Rule, string) {
	if size > l.FileBytes {
		return files.RuleFileBytes, fmt.Sprintf("the file is larger than %d bytes", l.FileBytes)
	}
	return "", ""
}
