package turns

// Heap has the least of its members on top, at place 0.
type Heap[T interface{ Compare(T) int }] []T

// Order makes a heap of members in any order.
func (h Heap[T]) Order() {
	for i := len(h)/2 - 1; i >= 0; i-- {
		h.Fix(i)
	}
}

// Push adds a member.
func (h *Heap[T]) Push(v T) {
	*h = append(*h, v)
	all := *h
	for i := len(all) - 1; i > 0; {
		above := (i - 1) / 2
		if all[i].Compare(all[above]) >= 0 {
			return
		}
		all[i], all[above] = all[above], all[i]
		i = above
	}
}

// Pop removes the top.
func (h *Heap[T]) Pop() T {
	var none T
	all := *h
	top, last := all[0], len(all)-1
	all[0], all[last] = all[last], none
	*h = all[:last]
	h.Fix(0)
	return top
}

// Fix restores the order below a member that has become greater.
func (h Heap[T]) Fix(i int) {
	for {
		least := i
		for k := 2*i + 1; k <= 2*i+2 && k < len(h); k++ {
			if h[k].Compare(h[least]) < 0 {
				least = k
			}
		}
		if least == i {
			return
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}
