// Package content is real material that Bagpipe's demo and tests take in:
// letters in six languages and scripts, a register (CSV), a description (XML) and
// two plates (PNG and JPEG), in folders.
//
// It owns those files and nothing else, and has no state. All of them were
// written and drawn for Bagpipe; draw/ made the plates. It must not know what is
// made of the material: package sample does.
package content

import "embed"

//go:generate go run ./draw

// Files are the material, with paths such as letters/書簡.txt.
//
//go:embed README.txt letters pictures register
var Files embed.FS
