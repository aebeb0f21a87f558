package gitstore

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// BenchmarkCommit is for profiles; the comparison with peers is internal/bench.
func BenchmarkCommit(b *testing.B) {
	for _, size := range []int{1, 100, 1000} {
		b.Run(fmt.Sprintf("group=%d", size), func(b *testing.B) {
			o := testOptions()
			o.Now = time.Now
			root := initRoot(b, o, nil)
			s := openRoot(b, root, o)
			files := map[string][]byte{}
			for i := range 1000 {
				files[benchPath(i)+"manifest.json"] = benchData(i, 1<<10)
				files[benchPath(i)+"execution.json"] = benchData(i, 2<<10)
			}
			edit := func(files map[string][]byte) {
				if _, err := s.Commit(context.Background(), func(Reader) (*Change, error) {
					return &Change{Files: files, Message: "bench: completed\n\nBagpipe-Item: x\n"}, nil
				}); err != nil {
					b.Error(err)
				}
			}
			edit(files)
			n := 0
			for b.Loop() {
				var wg sync.WaitGroup
				for range size {
					n++
					i := n * 7919 % 1000
					data := benchData(n+1000, 2<<10)
					wg.Go(func() {
						edit(map[string][]byte{benchPath(i) + "manifest.json": data[:1<<10], benchPath(i) + "execution.json": data})
					})
				}
				wg.Wait()
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "commits/s")
		})
	}
}

func benchPath(i int) string {
	return fmt.Sprintf("items/%x/%x/%x/%x/%015x/", i&15, i>>4&15, i>>8&15, i*7&15, i)
}

func benchData(i, size int) []byte {
	var b strings.Builder
	for n := 0; b.Len() < size; n++ {
		fmt.Fprintf(&b, "  \"key-%d\": {\"claimed\": \"2026-11-20T10:%02d:%02dZ\", \"elapsed\": %d}\n", n*i, i%60, n%60, i*n%977)
	}
	return []byte(b.String()[:size])
}
