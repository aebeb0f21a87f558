module bagpipe

go 1.26.0

require (
	github.com/google/renameio/v2 v2.0.2
	golang.org/x/sys v0.49.0
)
