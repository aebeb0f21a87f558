package catalog

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
)

// The objects of one flush are begun before any of them has ended, so that their items may share a pack.
func TestObjectsGoTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		objects := make([]object, objectsAtOnce)
		var begun sync.WaitGroup
		begun.Add(len(objects))
		var all crew
		err := all.begin(t.Context(), objects, func(context.Context, object) error {
			begun.Done()
			begun.Wait()
			return nil
		}).wait(t.Context())
		all.dismiss()
		if err != nil {
			t.Error(err)
		}
	})
}
