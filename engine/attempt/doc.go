// Package attempt takes one ready step on its way: claim, robot, publication, end. It also
// owns children, warm-ups, the replay of kept inputs, and the recovery of the attempts of
// dead engines.
//
// It must not know where a robot runs (Performer), how ready steps are chosen, or how
// answers are shown.
//
// Attempts and Recovery may be used by several goroutines; the rooms below guard what is
// theirs. A Work belongs to the goroutine of the pool that performs it. The lock of a
// WarmUps guards its steps. No context is kept: a Work gets two, one that ends when the
// engine must not commit any more, and the pool's, which ends the robot.
package attempt
