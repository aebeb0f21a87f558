package content

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// InParallel calls act for 0 to n-1 and returns when all calls have. Creating
// folders and files is most of what taking a group costs, and the kernel does it
// on all cores.
func InParallel(n int, act func(int)) { SideBySide(n, 2*runtime.GOMAXPROCS(0), act) }

// SideBySide runs act for each number below n, limit of them at once.
func SideBySide(n, limit int, act func(int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(n, limit) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				act(i)
			}
		})
	}
	wg.Wait()
}
