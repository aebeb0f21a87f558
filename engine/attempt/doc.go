// Package attempt takes one ready step on its way: claim, robot, publication, end. It also
// owns children, warm-ups, the replay of kept inputs, and the recovery of the attempts of
// dead engines.
//
// It must not know how ready steps are chosen, or how answers are shown.
//
// Attempts may be used by several goroutines; the rooms below guard what is theirs. A Work
// belongs to the goroutine of the pool that performs it. The lock of a Warmth guards its
// steps.
package attempt
