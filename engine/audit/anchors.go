package audit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

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
	name += a.ledger.Now().Format("20060102T150405.000Z")
	message := ledger.Message("anchor: the history up to "+v.Commit().String(), "", []ledger.Trailer{{"Bagpipe-Tree", v.Tree().String()}, {"Bagpipe-Agent", who.Agent}})
	if err := gitstore.SignTag(ctx, a.ledger.Root, name, v.Commit(), who.Author, key, message); err != nil {
		return "", &fault.Error{Kind: fault.Refused, Text: "the anchor was not signed", Err: err}
	}
	return name, nil
}

// anchors holds the anchors against the history, and their signatures against a list of
// signers: the file, or where it is "" the committed one.
func (a *Auditor) anchors(ctx context.Context, tip gitstore.View, signers string) (err error) {
	if signers == "" {
		dir, err := os.MkdirTemp("", "bagpipe-audit-")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		listed, err := ledger.ReadOptional(tip, layout.SignersFile)
		if err != nil {
			return err
		}
		signers = filepath.Join(dir, "signers")
		if err := os.WriteFile(signers, listed, 0o600); err != nil {
			return err
		}
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
		switch {
		case anchor.Commit.IsZero():
			find("is no tag of a commit")
		case !gitstore.Leads(ctx, a.ledger.Root, anchor.Commit, tip.Commit()):
			find("its commit %s is not in the history, which was another when it was signed", anchor.Commit)
		case anchor.Signed != "":
			find("no signer that is listed vouches for it: %s", ledger.Clip(strings.TrimSpace(anchor.Signed), 300))
		}
	}
	return nil
}

// lastAnchor is the newest anchor whose commit is in the history; "": there is none.
func (a *Auditor) lastAnchor(ctx context.Context, tip gitstore.Hash) (last gitstore.Anchor, err error) {
	all, err := gitstore.Anchors(ctx, a.ledger.Root, os.DevNull)
	for _, anchor := range all {
		if anchor.Commit.IsZero() || !gitstore.Leads(ctx, a.ledger.Root, anchor.Commit, tip) {
			continue
		}
		if last.Name == "" || gitstore.Leads(ctx, a.ledger.Root, last.Commit, anchor.Commit) {
			last = anchor
		}
	}
	return last, err
}
