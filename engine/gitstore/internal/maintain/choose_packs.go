package maintain

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"bagpipe/engine/gitstore/internal/odb"
	"bagpipe/engine/gitstore/internal/repo"
)

// packInfo is a pack on disk.
type packInfo struct {
	base string // path without .pack
	size int64
	left bool // not to be touched
	age  time.Time
}

func sizeOf(packs []packInfo) (n int64) {
	for _, p := range packs {
		n += p.size
	}
	return n
}

func listPacks(r *repo.Repo) ([]packInfo, error) {
	list, err := r.FS.ReadDir(r.PackDir())
	if err != nil {
		return nil, fmt.Errorf("list packs: %w", err)
	}
	names := map[string]bool{}
	for _, e := range list {
		names[e.Name()] = true
	}
	var packs []packInfo
	for _, e := range list {
		base, ok := strings.CutSuffix(e.Name(), ".pack")
		if !ok || !names[base+".idx"] {
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed meanwhile
		}
		if err != nil {
			return nil, fmt.Errorf("list packs: %w", err)
		}
		left := names[base+".keep"] || names[base+".mtimes"] || names[base+".promisor"]
		packs = append(packs, packInfo{filepath.Join(r.PackDir(), base), info.Size(), left, info.ModTime()})
	}
	return packs, nil
}

// joinRule says which packs are worth joining: those that come to so many times the
// largest of them, or to twice where more would not fit a joined pack.
type joinRule struct{ times, most int64 }

// A byte is copied once for each power of eight the store grows by, and a few packs of
// each size stay; with two times, joining was a quarter of the work at a million commits.
// Joining beside the work takes 17 bytes of memory an object, some 20 MB at most. A caller
// that asks for maintenance gets fewer packs.
var (
	atWork  = joinRule{8, odb.MaxJoined / 4}
	ifAsked = joinRule{2, odb.MaxJoined}
)

// chooseJoin takes as many of the smallest packs as the rule allows.
func chooseJoin(packs []packInfo, rule joinRule) []packInfo {
	list := bySize(packs)
	var sum int64
	n := 0
	for i, p := range list {
		if sum+p.size > rule.most {
			if i > 0 && sum >= 2*list[i-1].size {
				n = i
			}
			break
		}
		if sum += p.size; sum >= rule.times*p.size {
			n = i + 1
		}
	}
	return list[:n]
}

// bySize leaves out the packs that are not to be touched.
func bySize(packs []packInfo) []packInfo {
	list := slices.DeleteFunc(slices.Clone(packs), func(p packInfo) bool { return p.left })
	slices.SortFunc(list, func(a, b packInfo) int { return cmp.Compare(a.size, b.size) })
	return list
}

// chooseAll shares out every pack, the oldest first, so that each share fits one joined
// pack and a file's versions mostly stand in one. A pack that is as large already by
// itself stays.
func chooseAll(packs []packInfo) (shares [][]packInfo) {
	list := slices.DeleteFunc(byAge(packs), func(p packInfo) bool { return p.left || p.size > odb.MaxJoined })
	var sum int64
	for i, p := range list {
		if sum += p.size; i == 0 || sum > odb.MaxJoined {
			shares, sum = append(shares, nil), p.size
		}
		shares[len(shares)-1] = append(shares[len(shares)-1], p)
	}
	return shares
}

func byAge(packs []packInfo) []packInfo {
	list := slices.Clone(packs)
	slices.SortFunc(list, func(a, b packInfo) int { return a.age.Compare(b.age) })
	return list
}
