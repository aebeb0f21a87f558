// Package maintain keeps a repository small and quick to read beside the commits: it joins
// packs, stores versions as differences, and brings the commit-graph up to date.
//
// It owns the packs that are published already, git's commit-graph, and the hints of which
// object replaced which (hints.go). It must not know the branch's protocol, nor move it.
//
// One process maintains at a time, the one that holds .bagpipe/maintain.lock; within it,
// one call. No commit waits for maintenance, but for the moment in which it forgets the
// hints it used. Maintenance may be interrupted at any point. The rules are:
//
//   - A joined pack is whole, synced and named before the packs it replaces are removed; a
//     crash in between leaves both, and the next call joins again.
//   - Packs with a .keep (being published, or kept by a person) and cruft packs stay.
//   - A pack that is not as it was written stays where it is and is named in the error; the
//     others are joined all the same.
//   - git repack runs with --keep-unreachable: it, too, deletes no only copy.
package maintain
