package odb

// The rules are: a Builder writes the trees of a commit, the deepest first, then the commit, then what the next
// commit has, and the blobs of the group behind them all, in the order of commits. Whoever goes through commits
// from the oldest on comes to objects in that order. So what stands behind the object read last is read,
// and held against the name that is wanted: no index is asked. That an index has the same name there is for
// Digests to say, which takes note of both. Packs of other orders are left alone after some vain tries.

// ahead is where a Scan reads before it is asked.
type ahead struct {
	on    bool
	next  [2]Place // behind the last commit, and behind the last blob
	tries [2]int   // that may be in vain before another pack comes
}

const (
	mostInVain = 8
	mostTrees  = 64 // that one commit may bring

	// nearAhead is how far on, in bytes, an object may stand for the next to be looked for behind it again.
	nearAhead = 64 << 10
)

// Ahead makes the Scan, which has Digests that Rest will be asked of, read on behind what it read last.
func (s *Scan) Ahead() { s.ahead.on = true }

func section(t Type) int {
	if t == TypeBlob {
		return 1
	}
	return 0
}

// from notes where the next entry stands, behind one that an index gave.
func (a *ahead) from(at Place, t Type, end int64) {
	i := section(t)
	if ahead := at.off - a.next[i].off; at.p != a.next[i].p || ahead >= 0 && ahead < nearAhead {
		a.tries[i] = mostInVain
	}
	a.next[i] = Place{at.p, end}
}

// foreseen gives an object that stands behind the one read last; all that it reads is kept.
func (s *Scan) foreseen(h Hash, t Type) (found Type, data []byte, ok bool) {
	a, i := &s.ahead, section(t)
	if a.tries[i] == 0 {
		return 0, nil, false
	}
	for range mostTrees {
		at := a.next[i]
		found, data, ok = s.at(at)
		if !ok || section(found) != i || strict(found, data) != nil {
			break
		}
		name := s.hash.name(found, data)
		s.digests.note(at, name)
		s.keep(name, found, data, true)
		a.next[i].off = s.end
		if name == h {
			a.tries[i] = mostInVain
			return found, data, true
		}
		if found != TypeTree {
			break
		}
	}
	a.tries[i]--
	return 0, nil, false
}
