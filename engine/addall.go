package engine

import "context"

// addedAtOnce is how many paths AddAll takes in side by side; they share commits.
const addedAtOnce = 16

// AddAll is Add of several paths. told is called for each, in their order, as soon as
// those before it are told; one that cannot be taken in does not keep the others.
func (e *Engine) AddAll(ctx context.Context, paths []string, o AddOptions, told func(a Admitted, err error)) {
	type answer struct {
		Admitted
		err error
	}
	answers := make([]chan answer, len(paths))
	for i := range answers {
		answers[i] = make(chan answer, 1)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		sideBySide(len(paths), addedAtOnce, func(i int) {
			a, err := e.Add(ctx, paths[i], o)
			answers[i] <- answer{a, err}
		})
	}()
	for i := range paths {
		a := <-answers[i]
		told(a.Admitted, a.err)
	}
	<-ended
}
