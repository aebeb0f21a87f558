// Command sample makes inputs for trials:
//
//	go run ./testdata/sample/cmd DIR [NAME | NAME=FILE]…
//
// Without names it makes all good ones; -list shows what there is.
package main

import (
	"os"

	"bagpipe/testdata/sample"
)

func main() { os.Exit(sample.Main(os.Args[1:], os.Stdout, os.Stderr)) }
