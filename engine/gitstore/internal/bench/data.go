package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// item is the path of the i-th item, fanned out as layout does.
func item(i int) string {
	r := rand.New(rand.NewPCG(7, uint64(i)))
	id := fmt.Sprintf("%015x", r.Uint64()>>4)
	return "items/" + id[0:1] + "/" + id[1:2] + "/" + id[2:3] + "/" + id[3:4] + "/" + id
}

const (
	manifestSize  = 1 << 10
	executionSize = 2 << 10
)

// document is a JSON file of about size bytes, like those the engine writes:
// sorted keys, times, digests. version is what a transition changes.
func document(i, version, size int) []byte {
	r := rand.New(rand.NewPCG(uint64(i), 3))
	var b strings.Builder
	fmt.Fprintf(&b, "{\n  \"item\": \"%015x\",\n  \"schema\": 1,\n  \"version\": %d,\n  \"records\": {\n", r.Uint64()>>4, version)
	for n := 0; b.Len() < size-200; n++ {
		if n == 3 { // the attempt that is under way
			r = rand.New(rand.NewPCG(uint64(i), uint64(version)))
		}
		fmt.Fprintf(&b, "    \"%d-%08x\": {\n      \"claimed\": \"2026-11-20T10:%02d:%02dZ\",\n      \"elapsed\": %d.%03d,\n", n, r.Uint32(), r.IntN(60), r.IntN(60), r.IntN(100), r.IntN(1000))
		fmt.Fprintf(&b, "      \"runner\": \"host-%d:%d\",\n      \"state\": \"completed\"\n    },\n", r.IntN(9), r.IntN(30000))
	}
	fmt.Fprintf(&b, "    \"z\": {\"digest\": \"sha256:%016x%016x\"}\n  }\n}\n", r.Uint64(), r.Uint64())
	return []byte(b.String())
}

// transition is the k-th change of a run.
type transition struct {
	files   map[string][]byte
	message string
}

func newTransition(run, k, items int) transition {
	i := rand.New(rand.NewPCG(uint64(run), uint64(k))).IntN(items)
	version := run*1_000_000 + k + 1
	dir := item(i)
	id := dir[strings.LastIndexByte(dir, '/')+1:]
	return transition{
		files: map[string][]byte{
			dir + "/manifest.json":  document(i, version, manifestSize),
			dir + "/execution.json": document(i, version, executionSize),
		},
		message: fmt.Sprintf("unpack: completed %s (letters/box-%d)\n\nBagpipe-Item: %s\nBagpipe-Workflow: accession.1\nBagpipe-Step: unpack\nBagpipe-From: in-progress\nBagpipe-To: completed\nBagpipe-Attempt: 1-5c1e9a70\nBagpipe-Agent: unpack\n", id, i, id),
	}
}
