package audit

import (
	"errors"

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
		c.find(Signature, "", "nobody vouches for it: "+err.Error())
	}
	return nil
}

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
