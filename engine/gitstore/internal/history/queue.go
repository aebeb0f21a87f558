package history

// dated is a commit that can be compared with another of its kind.
type dated[T any] interface{ newer(T) bool }

// newestFirst is a heap of commits (container/heap), the newest on top.
type newestFirst[T dated[T]] []T

func (q newestFirst[T]) Len() int           { return len(q) }
func (q newestFirst[T]) Less(i, j int) bool { return q[i].newer(q[j]) }
func (q newestFirst[T]) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *newestFirst[T]) Push(x any)        { *q = append(*q, x.(T)) }
func (q *newestFirst[T]) Pop() any {
	old := *q
	c := old[len(old)-1]
	*q = old[:len(old)-1]
	return c
}
