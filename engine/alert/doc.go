// Package alert owns the digests that tell people of failures and of steps out of the
// flow: what is new, when it is due, and the hand-over to a command or an address.
//
// It must not know how an item fails, or what people decide then. One goroutine at a time
// makes and hands over digests, the holder of Alerts.turn; of several engines on one host
// one does, the holder of alerts.lock.
package alert
