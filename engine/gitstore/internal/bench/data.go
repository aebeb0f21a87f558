package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

func identifier(i int) string {
	return fmt.Sprintf("%015x", rand.New(rand.NewPCG(7, uint64(i))).Uint64()>>4)
}

// item is the path of the i-th item, fanned out as layout does.
func item(i int) string { return shape{1, 1, 1, 1}.path(i) }

// shape is a way to nest the items' folders: how many digits of the identifier
// name each level.
type shape []int

func (s shape) path(i int) string {
	id := identifier(i)
	path, at := "items/", 0
	for _, digits := range s {
		path += id[at:at+digits] + "/"
		at += digits
	}
	return path + id
}

const (
	manifestSize  = 1 << 10
	executionSize = 2 << 10
)

// document is a JSON file of about size bytes, like those the engine writes:
// sorted keys, times, digests. A transition, which version tells, changes one
// attempt in it and leaves the others as they were.
func document(i, version, size int) []byte {
	head := rand.New(rand.NewPCG(uint64(i), 3))
	var b strings.Builder
	fmt.Fprintf(&b, "{\n  \"item\": \"%015x\",\n  \"schema\": 1,\n  \"version\": %d,\n  \"records\": {\n", head.Uint64()>>4, version)
	for n := 0; b.Len() < size-200; n++ {
		r := rand.New(rand.NewPCG(uint64(i), uint64(10+n)))
		if n == version%4 {
			r = rand.New(rand.NewPCG(uint64(i), uint64(100+version)))
		}
		fmt.Fprintf(&b, "    \"%d-%08x\": {\n      \"claimed\": \"2026-11-20T10:%02d:%02dZ\",\n      \"elapsed\": %d.%03d,\n", n, r.Uint32(), r.IntN(60), r.IntN(60), r.IntN(100), r.IntN(1000))
		fmt.Fprintf(&b, "      \"runner\": \"host-%d:%d\",\n      \"state\": \"completed\"\n    },\n", r.IntN(9), r.IntN(30000))
	}
	fmt.Fprintf(&b, "    \"z\": {\"digest\": \"sha256:%016x%016x\"}\n  }\n}\n", head.Uint64(), head.Uint64())
	return []byte(b.String())
}

// transition is the k-th change of a run.
type transition struct {
	item    int
	files   map[string][]byte
	message string
}

func newTransition(run, k, items int) transition {
	i := rand.New(rand.NewPCG(uint64(run), uint64(k))).IntN(items)
	return changeOf(i, item(i), run*1_000_000+k+1)
}

func changeOf(i int, dir string, version int) transition {
	id := dir[strings.LastIndexByte(dir, '/')+1:]
	return transition{
		item: i,
		files: map[string][]byte{
			dir + "/manifest.json":  document(i, version, manifestSize),
			dir + "/execution.json": document(i, version, executionSize),
		},
		message: fmt.Sprintf("unpack: completed %s (letters/box-%d)\n\nBagpipe-Item: %s\nBagpipe-Workflow: accession.1\nBagpipe-Step: unpack\nBagpipe-From: in-progress\nBagpipe-To: completed\nBagpipe-Attempt: 1-5c1e9a70\nBagpipe-Agent: unpack\n", id, i, id),
	}
}
