package audit

import (
	"errors"
	"slices"
	"strings"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/guard"
	"bagpipe/engine/ledger"
	"bagpipe/engine/trust"
	"bagpipe/layout"
)

// signature holds a commit's signature, where it has one, against the list in its parent. Who
// has to sign is guard's to say.
func (c *committed) signature() error {
	_, armored, err := c.now.Signed()
	if err != nil || armored == "" {
		return err
	}
	none, err := guard.Vouched(c.a.ledger, c.Commit)
	switch {
	case err == nil:
		c.out.signed = true
	case errors.Is(err, trust.ErrBroken), !none:
		c.find(Signature, "", unlisted+err.Error())
	}
	return nil
}

// vouchedAfterAll takes back the findings of commits that stand on a list which is to be another: by that
// other one somebody vouches for them, such as for the engine's that puts it back.
func (a *Auditor) vouchedAfterAll(commits []gitstore.Hash, found []result, lists map[gitstore.Hash][]byte) error {
	for i, h := range commits {
		all := found[i].findings
		if len(lists) == 0 || all == nil || !slices.ContainsFunc(*all, isUnlisted) {
			continue
		}
		v, err := a.ledger.Store.At(h)
		if err != nil {
			return err
		}
		c, err := v.About()
		if err != nil {
			return err
		}
		list, other := lists[slices.Concat(c.Parents, []gitstore.Hash{{}})[0]]
		if _, err := guard.VouchedBy(a.ledger, list, h); other && err == nil {
			found[i].signed = true
			a.report.Signed++
			if *all = slices.DeleteFunc(*all, isUnlisted); len(*all) == 0 {
				found[i].findings = nil
			}
		}
	}
	return nil
}

const unlisted = "nobody vouches for it: "

func isUnlisted(f Finding) bool { return f.Kind == Signature && strings.HasPrefix(f.Text, unlisted) }

// root holds the first list of those who sign against the key that is to have begun it.
func (a *Auditor) root(commits []gitstore.Hash, found []result, fingerprint string) error {
	for i, h := range commits {
		if !found[i].list {
			continue
		}
		v, err := a.ledger.Store.At(h)
		if err != nil {
			return err
		}
		data, err := ledger.ReadOptional(v, layout.SignersFile)
		if err != nil {
			return err
		}
		payload, armored, err := v.Signed()
		if err != nil {
			return err
		}
		if _, by, err := trust.ParseSigners(data).Vouch(payload, armored); err != nil || by != fingerprint {
			a.tell(Finding{Commit: h.String(), Kind: Signature, Text: "it is the first list of those who sign, and key " + fingerprint + " did not sign it"})
		}
		return nil
	}
	a.tell(Finding{Kind: Signature, Text: "there is no list of those who sign, which key " + fingerprint + " should have begun"})
	return nil
}
