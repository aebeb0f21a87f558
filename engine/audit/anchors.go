package audit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"bagpipe/engine/fault"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/layout"
)

// Anchor signs the tip: a tag anchor/SITE/TIME, which covers all that came before it. A crash
// leaves the tag or no tag. key is a file, or "" for the one that Git is configured with.
func (a *Auditor) Anchor(ctx context.Context, key string) (name string, err error) {
	v, err := a.ledger.Store.Tip()
	if err != nil {
		return "", err
	}
	who := a.ledger.ByPerson()
	name = layout.AnchorTags
	if site := a.ledger.Site.Name; site != "" {
		name += string(site) + "/"
	}
	name += a.ledger.Now().Format(anchorTime)
	sum := newSums(a.ledger, v)
	top, err := sum.top()
	if err != nil {
		return "", err
	}
	if err := sum.save(a.ledger); err != nil {
		a.ledger.Log.Warn("remember sums", "err", err)
	}
	trailers := []ledger.Trailer{{"Bagpipe-Tree", v.Tree().String()}, {sumTrailer, top}}
	others, err := a.othersLast(ctx)
	if err != nil {
		return "", err
	}
	for _, o := range others {
		trailers = append(trailers, ledger.Trailer{"Bagpipe-Anchor", o.Name + " " + o.Object.String()})
	}
	message := ledger.Message("anchor: the history up to "+v.Commit().String(), "", append(trailers, ledger.Trailer{"Bagpipe-Agent", who.Agent}))
	if err := gitstore.SignTag(ctx, a.ledger.Root, name, v.Commit(), who.Author, key, message); err != nil {
		return "", &fault.Error{Kind: fault.Refused, Text: "the anchor was not signed", Err: err}
	}
	return name, nil
}

// Unlisted says why whoever goes by trust/allowed_signers, as it stands at the tip, does not take the anchor of that
// name for signed; "": it is listed.
func (a *Auditor) Unlisted(ctx context.Context, name string) (why string, err error) {
	v, err := a.ledger.Store.Tip()
	if err != nil {
		return "", err
	}
	signers, done, err := listedSigners(v)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, done()) }()
	all, err := gitstore.Anchors(ctx, a.ledger.Root, signers)
	i := slices.IndexFunc(all, func(o gitstore.Anchor) bool { return o.Name == name })
	if err != nil || i < 0 || all[i].Signed == "" {
		return "", err
	}
	return fmt.Sprintf("its key is not listed in %s: an audit does not take it for signed until it is, but with a list of your own (--signers)", layout.SignersFile), nil
}

// listedSigners puts the committed list of signers into a file, which done removes.
func listedSigners(tip gitstore.View) (file string, done func() error, err error) {
	listed, err := ledger.ReadOptional(tip, layout.SignersFile)
	if err != nil {
		return "", nil, err
	}
	dir, err := os.MkdirTemp("", "bagpipe-audit-")
	if err != nil {
		return "", nil, err
	}
	done = func() error { return os.RemoveAll(dir) }
	file = filepath.Join(dir, "signers")
	if err := os.WriteFile(file, listed, 0o600); err != nil {
		return "", nil, errors.Join(err, done())
	}
	return file, done, nil
}

// LastOwn is when this site made its last anchor, by its name; zero: never.
func (a *Auditor) LastOwn(ctx context.Context) (last time.Time, err error) {
	all, err := gitstore.ListedAnchors(ctx, a.ledger.Root, gitstore.Hash{})
	for _, o := range all {
		site, at, named := strings.Cut(strings.TrimPrefix(o.Name, layout.AnchorTags), "/")
		if !named {
			site, at = "", site
		}
		if t, err := time.Parse(anchorTime, at); err == nil && site == string(a.ledger.Site.Name) && t.After(last) {
			last = t
		}
	}
	return last, err
}

const anchorTime = "20060102T150405.000Z"

// sumTrailer is what an anchor states of all records; see sums.
const sumTrailer = "Bagpipe-SHA256"

// othersLast are the last anchors of the other sites, by name.
func (a *Auditor) othersLast(ctx context.Context) ([]gitstore.Anchor, error) {
	all, err := gitstore.ListedAnchors(ctx, a.ledger.Root, gitstore.Hash{})
	if err != nil {
		return nil, err
	}
	last := map[string]gitstore.Anchor{}
	for _, o := range all { // by name, which ends in the time
		site, _, named := strings.Cut(strings.TrimPrefix(o.Name, layout.AnchorTags), "/")
		if !named {
			site = ""
		}
		if site != string(a.ledger.Site.Name) {
			last[site] = o
		}
	}
	return slices.SortedFunc(maps.Values(last), func(x, y gitstore.Anchor) int { return strings.Compare(x.Name, y.Name) }), nil
}

// stated is the sum that an anchor states; "": none, as anchors did once.
func (a *Auditor) stated(ctx context.Context, o gitstore.Anchor) (string, error) {
	tag, _, err := gitstore.Object(ctx, a.ledger.Root, "tag", o.Object.String())
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(tag)) {
		if sum, is := strings.CutPrefix(strings.TrimSpace(line), sumTrailer+": "); is {
			return sum, nil
		}
	}
	return "", nil
}

// anchors holds the anchors against the history, and their signatures against a list of
// signers: the file, or where it is "" the committed one.
func (a *Auditor) anchors(ctx context.Context, tip gitstore.View, signers string) (err error) {
	if signers == "" {
		var done func() error
		if signers, done, err = listedSigners(tip); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, done()) }()
	}
	if _, err := os.Stat(signers); err != nil {
		return fmt.Errorf("read the signers: %w", err)
	}
	if signers, err = filepath.Abs(signers); err != nil {
		return err
	}
	all, err := gitstore.Anchors(ctx, a.ledger.Root, signers)
	if err != nil {
		return err
	}
	for _, anchor := range all {
		a.report.Anchors++
		find := func(format string, args ...any) {
			a.tell(Finding{Commit: anchor.Object.String(), Kind: Signature, Text: anchor.Name + ": " + fmt.Sprintf(format, args...)})
		}
		if !anchor.Commit.IsZero() {
			if err := a.holdSum(ctx, anchor, find); err != nil {
				return err
			}
		}
		switch {
		case anchor.Commit.IsZero():
			find("is no tag of a commit")
		case !gitstore.Leads(ctx, a.ledger.Root, anchor.Commit, tip.Commit()):
			find("its commit %s is not in the history, which was another when it was signed", anchor.Commit)
		case anchor.Signed != "":
			find("no signer that is listed in %s, or in the file of --signers, vouches for it: %s", layout.SignersFile, ledger.Clip(strings.TrimSpace(anchor.Signed), 300))
		}
	}
	return nil
}

// holdSum reckons the sum that an anchor states; what was remembered of it is not trusted.
func (a *Auditor) holdSum(ctx context.Context, anchor gitstore.Anchor, find func(string, ...any)) error {
	want, err := a.stated(ctx, anchor)
	if err != nil || want == "" {
		return err
	}
	at, err := a.ledger.Store.At(anchor.Commit)
	if err != nil {
		return nil // it is told of as another history's
	}
	if a.sums == nil {
		a.sums = map[gitstore.Hash]string{}
	}
	s := &sums{v: at, known: a.sums}
	if is, err := s.top(); err != nil {
		return err
	} else if is != want {
		find("it states %s of the records, whose sum is %s", want, is)
	}
	return nil
}

// lastAnchor is the newest anchor whose commit is in the history, the last by name of several; "":
// there is none.
func (a *Auditor) lastAnchor(ctx context.Context, tip gitstore.Hash) (last gitstore.Anchor, err error) {
	all, err := gitstore.ListedAnchors(ctx, a.ledger.Root, tip)
	var commits []gitstore.Hash
	for _, anchor := range all {
		if !anchor.Commit.IsZero() && !slices.Contains(commits, anchor.Commit) {
			commits = append(commits, anchor.Commit)
		}
	}
	if err == nil && len(commits) > 1 {
		commits, err = gitstore.Newest(ctx, a.ledger.Root, commits)
	}
	for _, anchor := range all {
		if slices.Contains(commits, anchor.Commit) {
			last = anchor
		}
	}
	return last, err
}
