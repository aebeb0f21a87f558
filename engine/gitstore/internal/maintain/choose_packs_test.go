package maintain

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"bagpipe/engine/gitstore/internal/odb"
)

func TestMaintainLeavesKeptPacksAlone(t *testing.T) {
	list := []packInfo{{base: "kept", size: 1, left: true}}
	for i := range 20 {
		list = append(list, packInfo{base: fmt.Sprint(i), size: 10})
	}
	list = append(list, packInfo{base: "large", size: 10_000}, packInfo{base: "medium", size: 150})
	for rule, want := range map[joinRule]int{atWork: 20, ifAsked: 21} {
		got := chooseJoin(list, rule)
		if len(got) != want || slices.ContainsFunc(got, func(p packInfo) bool { return p.left }) {
			t.Errorf("%+v: joins %v", rule, got)
		}
	}
}

// TestJoiningCopiesAByteAFewTimes lets a store grow to many thousand packs.
func TestJoiningCopiesAByteAFewTimes(t *testing.T) {
	const small = 50_000
	var packs []packInfo
	var added, copied int64
	most := 0
	for range 200 * 500 {
		packs = append(packs, packInfo{size: small})
		if added += small; len(packs) < 200 {
			continue
		}
		for {
			chosen := chooseJoin(packs, atWork)
			if len(chosen) < joinFrom {
				break
			}
			packs = append(bySize(packs)[len(chosen):], packInfo{size: sizeOf(chosen)})
			copied += sizeOf(chosen)
		}
		most = max(most, len(packs))
	}
	t.Logf("%d MB copied %.1f times, at most %d packs left", added>>20, float64(copied)/float64(added), most)
	if most > 60 || copied > 4*added {
		t.Errorf("%d MB copied %.1f times, at most %d packs left", added>>20, float64(copied)/float64(added), most)
	}
}

func TestEveryPackHasItsShare(t *testing.T) {
	const half = odb.MaxJoined/2 + 1
	at := func(n int, size int64) packInfo {
		return packInfo{base: fmt.Sprint(n), size: size, age: time.Unix(int64(n), 0)}
	}
	kept := at(9, 1)
	kept.left = true
	shares := chooseAll([]packInfo{at(4, half), at(1, 10), at(2, half), kept, at(3, 20), at(5, 2*odb.MaxJoined), at(6, half)})
	var got []string
	for _, share := range shares {
		var names []string
		for _, p := range share {
			names = append(names, p.base)
		}
		got = append(got, strings.Join(names, ","))
	}
	if want := "1,2,3 4 6"; strings.Join(got, " ") != want {
		t.Errorf("shares %q, want %s", got, want)
	}
}
