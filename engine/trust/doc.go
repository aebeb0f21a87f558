// Package trust makes and checks signatures of commits by SSH keys.
//
// It owns the form of those signatures and of the list of keys that count. It must not know
// Git, nor what a commit means. It has no state; a Key may be used by several goroutines.
//
// # The list
//
// trust/allowed_signers is read as ssh-keygen reads it, a key a line:
//
//	keeper@example.org namespaces="git" ssh-ed25519 AAAA… comment
//
// Of the options namespaces counts. A line of an authority that certifies others' keys is
// passed over. Dates do not count: whether a key counts is asked of the list in the parent
// of the commit that it signed.
//
// # A signature
//
// It is what ssh-keygen -Y sign -n git makes (PROTOCOL.sshsig of OpenSSH): the armoured form of
//
//	"SSHSIG" 1 KEY "git" "" "sha512" SIGNATURE
//
// where the signature is of "SSHSIG" "git" "" "sha512" and the digest of the commit without its
// gpgsig header.
package trust
