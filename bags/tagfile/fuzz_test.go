package tagfile

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func FuzzManifestLine(f *testing.F) {
	for _, s := range []string{"aa  data/x", "aa *data/x", "aa\tdata/%0A%25", "", " ", "x", "aa  ./data/../x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		m, err := ParseManifestLine(s)
		if err != nil {
			return
		}
		if m.Path == "" || m.Sum == "" {
			t.Fatalf("%q: an entry without a path or sum", s)
		}
		if p, bare := DecodeManifestPath(m.Path); !bare {
			if q, _ := DecodeManifestPath(EncodeManifestPath(p)); q != p {
				t.Fatalf("%q: encoding %q gives %q back", s, p, q)
			}
		}
	})
}

func FuzzInfo(f *testing.F) {
	for _, s := range []string{"A: b\n", "A: b\n c\n", "A:b\r\nB : c\r", "\ufeffA: b", " x\n", ":\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		fields, err := ReadInfo(strings.NewReader(s))
		if err != nil {
			return
		}
		for _, in := range fields {
			if in.Check() != nil || strings.ContainsFunc(in.Value, isLineControl) || !utf8.ValidString(in.Value) {
				continue
			}
			out, err := ReadInfo(strings.NewReader(foldField(in)))
			if err != nil || len(out) != 1 || out[0] != in {
				t.Fatalf("%q became %q, %v", in, out, err)
			}
		}
	})
}

func FuzzDeclaration(f *testing.F) {
	f.Add([]byte("BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"))
	for _, s := range []string{
		"BagIt-Version : 1.0\nTag-File-Character-Encoding : UTF-8\n", "BagIt-Version:1.0\rTag-File-Character-Encoding:UTF-8\r", "\ufeffBagIt-Version: 1.0\n",
		"Tag-File-Character-Encoding: UTF-8\r\nBagIt-Version: 0.97\r\n\r\n", "bagit-version: .97\n", "BagIt-Version: 1.0\nBagIt-Version: 0.97\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d := ParseDeclaration(data)
		if d.Version == "1.0" && len(d.Problems) == 0 && d.Encoding == "UTF-8" {
			clean := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(data))
			if clean != "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n" {
				t.Fatalf("%q passes for a clean declaration", data)
			}
		}
	})
}

func FuzzFetchLine(f *testing.F) {
	for _, s := range []string{"https://example.org/a 3 data/a", "file:///x - data/a b", "x", "", " ", "a:b\t-\tdata/%0A"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		l, err := ParseFetchLine(s)
		if err == nil && (l.Url == "" || l.Path == "" || l.Length < -1 || strings.ContainsAny(l.Url, " \t")) {
			t.Fatalf("%q: %+v", s, l)
		}
	})
}
