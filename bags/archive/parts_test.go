package archive

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParts(t *testing.T) {
	for name, tc := range map[string]struct {
		names []string
		want  []PartSet
	}{
		"7z":          {[]string{"a.txt", "v.7z.002", "v.7z.001", "v.7z.003"}, []PartSet{{"v.7z", []string{"v.7z.001", "v.7z.002", "v.7z.003"}, ""}}},
		"rar":         {[]string{"v.part2.rar", "v.part1.rar"}, []PartSet{{"v.rar", []string{"v.part1.rar", "v.part2.rar"}, ""}}},
		"rar, padded": {[]string{"v.part02.rar", "v.part01.rar", "v.part10.rar"}, []PartSet{{"v.rar", []string{"v.part01.rar", "v.part02.rar", "v.part10.rar"}, "v.part03.rar"}}},
		"old rar":     {[]string{"v.r01", "v.rar", "v.r00"}, []PartSet{{"v.rar", []string{"v.rar", "v.r00", "v.r01"}, ""}}},
		"split zip":   {[]string{"v.z01", "v.zip", "v.z02"}, []PartSet{{"v.zip", []string{"v.zip", "v.z01", "v.z02"}, ""}}},
		"no first":    {[]string{"v.7z.002", "v.7z.003"}, []PartSet{{"v.7z", []string{"v.7z.002", "v.7z.003"}, "v.7z.001"}}},
		"alone":       {[]string{"v.7z.001", "w.part1.rar", "x.zip", "y.rar", "z.001", "book.001.txt"}, nil},
		"two":         {[]string{"a.7z.001", "b.7z.001", "a.7z.002", "b.7z.002"}, []PartSet{{"a.7z", []string{"a.7z.001", "a.7z.002"}, ""}, {"b.7z", []string{"b.7z.001", "b.7z.002"}, ""}}},
		"no numbers":  {[]string{"v.7z.000", "v.7z.999999", "part.rar"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, Parts(tc.names)); d != "" {
				t.Error(d)
			}
		})
	}
}
