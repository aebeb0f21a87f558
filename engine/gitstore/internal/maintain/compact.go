package maintain

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
)

// compactedFile names the packs whose files are stored as differences.
const compactedFile = "compacted"

// compactShare: all packs become one when the packs added are more than one part in so
// many of the rest. So the whole stays within 1.25 of the least.
const compactShare = 4

// outgrown reports whether so many packs were added since the last time.
func (m *Maintainer) outgrown(packs []packInfo) bool {
	text, err := m.repo.FS.ReadFile(m.repo.Temp(compactedFile))
	if err != nil {
		text = nil // never done
	}
	var old, added int64
	for _, p := range packs {
		if bytes.Contains(text, []byte(filepath.Base(p.base))) {
			old += p.size
		} else {
			added += p.size
		}
	}
	return added >= m.CompactFrom && added > old/compactShare
}

// shrinkAdded joins all packs, with differences, when enough were added; else small ones.
func (m *Maintainer) shrinkAdded(ctx context.Context, packs []packInfo, r *Report) error {
	if !m.outgrown(packs) {
		return m.joinSmall(ctx, packs, r, ifAsked)
	}
	pairs, err := readHints(m.repo)
	if err != nil {
		return err
	}
	var rotten error // the others are joined all the same
	for _, share := range chooseAll(packs) {
		joined, base, err := joinSound(ctx, m.repo, share, pairs)
		if rotten = errors.Join(rotten, err); base == "" {
			return rotten
		}
		r.Joined, r.Compacted = r.Joined+len(joined), true
	}
	if packs, err = listPacks(m.repo); err != nil {
		return errors.Join(rotten, err)
	}
	return errors.Join(rotten, m.markCompacted(packs), dropHints(m.repo, len(pairs)))
}

// repack lets git pack everything anew. A crash leaves what git repack leaves: the old
// packs, the new one or both.
func (m *Maintainer) repack(ctx context.Context, packs []packInfo, r *Report) error {
	if err := m.shrinkAdded(ctx, packs, r); err != nil {
		return err
	}
	if err := m.repo.RunGit(ctx, "repack", "-a", "-d", "-k", "-q"); err != nil {
		return err
	}
	r.Compacted = true
	packs, err := listPacks(m.repo)
	if err != nil {
		return err
	}
	largest := slices.MaxFunc(packs, func(a, b packInfo) int { return cmp.Compare(a.size, b.size) })
	return m.markCompacted([]packInfo{largest})
}

// markCompacted is not synced: without the mark every pack counts as added, and is packed
// again sooner.
func (m *Maintainer) markCompacted(packs []packInfo) error {
	f, err := m.repo.FS.OpenFile(m.repo.Temp(compactedFile), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(baseNames(packs))
	return errors.Join(err, f.Close())
}

// baseNames lists packs by their file names without .pack, one a line.
func baseNames(packs []packInfo) []byte {
	var b bytes.Buffer
	for _, p := range packs {
		b.WriteString(filepath.Base(p.base) + "\n")
	}
	return b.Bytes()
}
