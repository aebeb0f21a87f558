// Package finding holds one thing wrong, or worth knowing, about a bag, and the codes and
// severities of such findings.
//
// It owns their words, which reports and tests refer to. It must not know how a bag is
// checked. It keeps no state.
package finding
