package archive

import (
	"archive/tar"
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
)

// Where the fuzzing begins: what hostile archives and bags are made of, by the same
// generators as the tests. From a good archive alone it would hardly find the rest.

// hostileNames break a rule each, or come near one.
var hostileNames = []string{
	"../x", "a/../../x", "/etc/x", "C:/x", "C:x", `\\server\x`, `a\..\x`, "a\x00b", "a\x01", "./a", "a//b", "a/./b", "a/", "con.txt", "a. ",
	"caf\xe9", "cafe\u0301", "caf\u00e9", strings.Repeat("n", 255), strings.Repeat("n", 256), strings.Repeat("d/", 70) + "x", strings.Repeat("long/", 500),
}

// edited changes one little-endian field of an archive.
func edited(b []byte, at int, v uint32) []byte {
	b = bytes.Clone(b)
	binary.LittleEndian.PutUint32(b[at:], v)
	return b
}

func seedZips(t testing.TB) (all [][]byte) {
	for _, n := range hostileNames {
		all = append(all, zipOf(t, n))
	}
	good := zipOf(t, "one.txt", "two.txt")
	central, end := bytes.Index(good, []byte("PK\x01\x02")), bytes.LastIndex(good, []byte("PK\x05\x06"))
	second := central + 4 + bytes.Index(good[central+4:], []byte("PK\x01\x02"))
	all = append(all, zipOf(t, "a", "a"), zipOf(t, "a", "a/b"), zipOf(t, "A", "a"), good[:len(good)-30], append(bytes.Clone(good), "more"...),
		append([]byte("before"), good...), edited(good, second+42, 0), edited(good, central+24, 1<<31), edited(good, central+20, 1<<31),
		edited(good, central+16, 0), edited(good, end+8, 0x00010001), edited(good, end+4, 1), edited(good, central+8, 0x00080009), edited(good, 6, 0x00080009))
	for _, method := range []uint32{9, 12, 14, 93, 95, 98, 99} {
		all = append(all, edited(edited(good, 8, method), central+10, method))
	}
	return all
}

func seedTars(t testing.TB) (all [][]byte) {
	for _, n := range hostileNames {
		if !strings.Contains(n, "\x00") {
			all = append(all, tarOf(t, file(n, "")))
		}
	}
	for _, kind := range []byte{tar.TypeSymlink, tar.TypeLink, tar.TypeFifo, tar.TypeChar, tar.TypeBlock} {
		all = append(all, tarOf(t, file("a", "x"), tarEntry{tar.Header{Name: "l", Linkname: "../a", Typeflag: kind}, ""}, file("l/x", "y")))
	}
	good := tarOf(t, file("a", strings.Repeat("x", 700)), file("b/c", "y"))
	return append(all, tarOf(t, file("a", "x"), file("a", "y")), tarOf(t, file("a", "x"), file("a/b", "y")), tarOf(t, file("a/b", "x"), file("a", "y")),
		tarOf(t, tarEntry{tar.Header{Name: "s", Mode: 0o6755}, "x"}), good[:512], good[:1200], good[:len(good)-1024], append(bytes.Clone(good), "more"...))
}

func seedRars() (all [][]byte) {
	for _, f := range []rarFile{
		{name: "../x"}, {name: "/x"}, {name: "x", link: "/etc/passwd"}, {name: "x", data: "x", flags: 4}, {name: "Gr\x94\xe1e.txt", data: "x"}, {name: "d", folder: true},
	} {
		all = append(all, rar4Of(f), rar5Of(f), rar4Of(f, f), rar5Of(f, f))
	}
	whole := rar5Of(someRar[0], someRar[1])
	return append(all, whole[:len(whole)-8], append(bytes.Clone(whole), make([]byte, 64)...), append(bytes.Clone(whole), "more"...))
}
