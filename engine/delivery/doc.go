// Package delivery brings items where delivery rules say, and keeps account of it.
//
// It owns delivery.json (layout.Deliveries), controls/delivery.json, how objects are held
// against rules, and the sending: to a folder, an address, a program, or where deposits go.
// It must not know how rules are written (recognise does), nor steps.
//
// # Held against the rules
//
// Of each target the first rule that fits decides. What fits is ready, or waits for a person
// where approve: says so. Objects are found by the difference of trees: all whose records are
// not as at the last look, whoever changed them; .bagpipe/delivery has that tree, and which
// items have something to send or wait for a person. Without it all items are looked at, and those
// held against the rules that changed since these came into force, as the history says. What is ready is held
// against changed rules, too.
//
// An item goes once no workflow of it is under way or failed, and while it is not held
// (state.Unsettled); one that something keeps is looked at again once its records change. Its
// key is ITEM-vVERSION-TARGET, and is sent along.
//
// # A delivery
//
//	ready → sending → delivered          committed before it begins, and once the target has it
//	waits → ready                        approved; the approval is of that version
//	delivered → unconfirmed              no rule says so any more; → withdrawn by republishing
//	sending → ready, failed              the third failure in a row waits for a person
//	unconfirmed, with an engine          that engine takes it back; → withdrawn
//	unconfirmed, decided as withdrawn    the target was away when a person took it back; Pass does,
//	                                     unless the target refused: that is left to a person
//
// sent says where its target was (place) and in which form it went (format). Where the target is at another place now, it is asked
// before it is sent anything anew, and places where something was left (left) are told of when it is taken back, not reached.
//
// A target may keep versions apart, by their keys or addresses: then each that was sent stays there, as a portal's readers
// may have cited it, until the item is taken back. sent names them all, and each is asked back, the last one last. A folder holds
// the newest alone.
//
// After a crash the next engine finds sending with an engine that is gone: the target is
// asked first, and what it holds under that key and digest is not sent again.
//
// A delivery.json that cannot be read is left as it is: nothing is delivered, confirmed or taken back of that item, which is
// listed as unreadable. One that a push broke is put back by the guard.
//
// # Republishing
//
// controls/delivery.json says how far it is:
//
//	{"begun": "…", "by": "…", "engine": "…", "phase": "unconfirm", "rules": "sha256:…", "schema": 1}
//
// unconfirm: all that is delivered becomes unconfirmed. compute: all objects are held against
// the rules, what fits is confirmed or added; what another engine is sending is due, and held against them when that
// has ended. withdraw: what is unconfirmed is taken back. A
// phase is begun again where its engine is gone, and nothing is withdrawn before compute has
// ended; where the rules changed meanwhile, it is computed again.
//
// # Formats
//
//	files   the content                    bag    a BagIt 1.0 bag of it
//	stac    the content and item.json      text   what a template makes of the manifest
//
// # Locks
//
// Pass and Republish are for one goroutine at a time, held by Keeper.turn; of several
// engines the commit of sending decides who sends. Keeper.listing is held by a list of all
// items.
package delivery
