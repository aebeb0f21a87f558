// Package notice says who is told of what: notify: in bagpipe.yaml.
//
// It owns the words of that part of the settings, and where secrets are read. It must not know
// what happened, nor how a digest is handed over: package notices does. Values never change
// once they are checked; no lock guards them.
package notice
