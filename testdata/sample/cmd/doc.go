// Command sample makes inputs for trials:
//
//	go run ./testdata/sample/cmd DIR [NAME | NAME=FILE]…
//
// Without names it makes all good ones; -list shows what there is.
//
// It owns nothing but its command line. It must not know how a sample is made:
// package sample does. It has no state.
package main
