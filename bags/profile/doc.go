// Package profile reads BagIt profiles, 1.1.0 to 1.4.0, and compares a bag with one.
//
// It owns the profile file and its constraints. It must not know how a bag is read:
// package bags hands it Facts. It stands below bags. It keeps no state, and starts no
// goroutine.
package profile
