package main

import (
	"os"

	"bagpipe/testdata/sample"
)

func main() { os.Exit(sample.Main(os.Args[1:], os.Stdout, os.Stderr)) }
