package catalog

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
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
		}).wait(t.Context(), time.Hour, nil)
		all.dismiss()
		if err != nil {
			t.Error(err)
		}
	})
}

// What is not done yet is told meanwhile, as a large file is read for long.
func TestObjectsThatTakeLongAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all crew
		var told []string
		err := all.begin(t.Context(), []object{{path: "small"}, {path: "large"}}, func(_ context.Context, o object) error {
			if o.path == "large" {
				time.Sleep(3*time.Second + time.Millisecond)
			}
			return nil
		}).wait(t.Context(), time.Second, func(undone []object) {
			for _, o := range undone {
				told = append(told, o.path)
			}
		})
		all.dismiss()
		if err != nil || !slices.Equal(told, []string{"large", "large", "large"}) {
			t.Error(told, err)
		}
	})
}
