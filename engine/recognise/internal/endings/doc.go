// Package endings tells how every text must end that an expression or a pattern fits, or what must
// stand in it.
//
// It owns that derivation, and nothing else; it must not know rules or candidates. It is
// pure: no lock guards anything.
package endings
