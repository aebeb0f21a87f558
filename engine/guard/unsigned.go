package guard

import (
	"fmt"
	"slices"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/engine/trust"
	"bagpipe/layout"
)

// StayOut says why the commits of this workspace stay out at others; "": they do not. It reads the settings and the list at
// the tip, and signs nothing.
func StayOut(g *Guard) (why string, err error) {
	l := g.ledger
	v, err := l.Store.Tip()
	if err != nil || l.Clone || g.Requires == nil || !slices.Contains(g.Requires(v), Sites) {
		return "", err
	}
	list, err := ledger.ReadOptional(v, layout.SignersFile)
	signers := trust.ParseSigners(list)
	if err != nil || signers.None() { // then nobody's signature is asked for
		return "", err
	}
	const stay = ", and sites must sign (" + layout.SettingsFile + ", trust: require:): at others its commits stay out, or hold the items"
	which, file := gitstore.SigningOf(l.Root)
	if which == "" {
		return "this workspace does not sign" + stay, nil
	}
	key, err := trust.OpenKey(file)
	switch {
	case err != nil:
		return fmt.Sprintf("this workspace cannot sign: %v", err) + stay, nil //nolint:nilerr // it is told
	case !signers.Lists(key):
		return "this workspace signs by a key that is not listed in " + layout.SignersFile + stay, nil
	}
	return "", nil
}
