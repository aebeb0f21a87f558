// Package form owns what is told of an item outside: the labels and tag files of a collection's
// bags, and the public record with its Dublin Core, made of the item's manifest by paths.
//
// It must not know where these go, nor how bags are made. It has no state.
package form
