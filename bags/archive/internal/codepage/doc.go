// Package codepage turns the names of members into UTF-8.
//
// It owns the code pages and the guess among them. It must not know formats. It keeps no
// state, and starts no goroutine.
package codepage
