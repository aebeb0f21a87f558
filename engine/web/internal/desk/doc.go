// Package desk owns what pages and calls have in common: who asks, in whose name the rooms
// act, which items an account reaches, what parameters narrow a listing, and which status of
// HTTP an error is.
//
// It must not know how an answer is written. A Desk never changes; what it remembers (Pulse,
// Pictures, Presence) has locks of its own.
package desk
