package gitstore

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"bagpipe/layout"
)

const (
	offerRefs    = "refs/heads/" + layout.OffersBranches
	remoteOffers = "refs/bagpipe/for/" // with the remote's name: its branches for/NAME
)

// Offer is a branch for/NAME: commits that somebody asks to be joined with the history.
type Offer struct {
	Branch string // for/NAME
	Remote string // where it stands; "": in this repository
	Commit Hash
}

func (o Offer) ref() string {
	name := strings.TrimPrefix(o.Branch, layout.OffersBranches)
	if o.Remote == "" {
		return offerRefs + name
	}
	return remoteOffers + o.Remote + "/" + name
}

// OffersAt is when the names of own branches for/NAME of the repository at root last changed, at the
// cost of one look at a folder; zero: there are none. Those that git packed away, and those below a folder of
// the name, are not seen.
func OffersAt(root string) time.Time {
	dir := filepath.Join(root, layout.RepositoryDir, "refs", "heads", strings.TrimSuffix(layout.OffersBranches, "/"))
	f, err := os.Open(dir)
	if err != nil {
		return time.Time{}
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return time.Time{}
	}
	if _, err := f.Readdirnames(1); err != nil { // of many, one tells
		return time.Time{}
	}
	return info.ModTime()
}

// HasOffer reports whether an own branch for/NAME stands as it was pushed last, at the cost of one look.
func HasOffer(root, branch string) bool {
	_, err := os.Lstat(filepath.Join(root, layout.RepositoryDir, Offer{Branch: branch}.ref()))
	return err == nil
}

// Offers lists the branches for/NAME of the workspace at root, and those that its remotes had
// when they were fetched from; at most so many, 0: all. Of own branches that are named, those
// alone are listed that are there.
func Offers(ctx context.Context, root string, most int, own ...string) (all []Offer, err error) {
	refs := []string{offerRefs, remoteOffers}
	if len(own) > 0 {
		refs, most = nil, len(own)
	}
	for _, b := range own {
		refs = append(refs, Offer{Branch: b}.ref())
	}
	out, err := gitSays(ctx, root, nil, slices.Concat([]string{"for-each-ref", fmt.Sprintf("--count=%d", most), "--format=%(objectname) %(refname)"}, refs)...)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(out)) {
		hash, ref, _ := strings.Cut(strings.TrimSpace(line), " ")
		var o Offer
		if o.Commit, err = ParseHash(hash); err != nil {
			return nil, err
		}
		if name, own := strings.CutPrefix(ref, offerRefs); own {
			o.Branch = layout.OffersBranches + name
		} else {
			remote, name, _ := strings.Cut(strings.TrimPrefix(ref, remoteOffers), "/")
			o.Remote, o.Branch = remote, layout.OffersBranches+name
		}
		all = append(all, o)
	}
	return all, nil
}

// DropOffer removes a branch of this repository, or this repository's note of a remote's,
// unless it was pushed to again.
func DropOffer(ctx context.Context, root string, o Offer) error {
	_, err := gitSays(ctx, root, nil, "update-ref", "-d", o.ref(), o.Commit.String())
	return err
}

// deletedAtOnce bounds the words of one push.
const deletedAtOnce = 200

// DropRemoteOffers removes branches at a remote, unless they were pushed to again: those stay,
// as do all where the remote lets nobody remove them.
func DropRemoteOffers(ctx context.Context, root, remote string, silence time.Duration, offers []Offer) {
	for some := range slices.Chunk(offers, deletedAtOnce) {
		args := []string{"push", "--porcelain", "--progress", "--no-follow-tags"}
		var refs []string
		for _, o := range some {
			ref := "refs/heads/" + o.Branch
			args = append(args, "--force-with-lease="+ref+":"+o.Commit.String())
			refs = append(refs, ":"+ref)
		}
		_, _ = askRemote(ctx, root, silence, slices.Concat(args, []string{"--", remote}, refs)...) // what stays is told of by the next sync
	}
}
