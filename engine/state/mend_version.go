package state

import (
	"reflect"
	"slices"

	"bagpipe/layout"
)

// The rules are: a manifest may become the next version of its item when nothing of
// the item was under way, and the same commit started one workflow, at the time the
// manifest gives. Then it says anew what was dropped; what the item is called, when it
// came and whose child it is stay. The version of an object in a catalog may end what is
// under way, by the same commit, where no step is at work. Such an object may also be
// somewhere else in its catalog, and have another name and stamp, without being another.

// NewVersion reports whether now makes the next version of what before was. The statuses
// of before must have been computed.
func NewVersion(before, now *Execution, was, is layout.Manifest) bool {
	inPlace := samePlaces(was.Source, is.Source)
	if is.Version != was.Version+1 || is.Since.IsZero() || is.Source.Drop == "" && !inPlace {
		return false
	}
	started := 0
	for name, w := range now.Workflows {
		if before.Workflows[name] == nil {
			started++
			if !w.Created.Equal(is.Since) {
				return false
			}
		}
	}
	if inPlace {
		return started == 1 && AtWork(before) == "" && !slices.ContainsFunc(before.Names(), func(name string) bool {
			return before.Workflows[name].Status.UnderWay() && len(now.Deactivations(name)) == 0
		})
	}
	return started == 1 && before.Underway() == ""
}

// samePlaces reports whether both are objects that stay below the root of one catalog.
func samePlaces(was, is layout.Source) bool {
	if was.Place == nil || is.Place == nil || was.Place.Catalog != is.Place.Catalog {
		return false
	}
	at, err := layout.DecodePath(is.Place.Path)
	if err != nil {
		return false
	}
	_, badPath := layout.ParseRelPath(at)
	_, badName := is.Place.Beside()
	return badPath == nil && badName == nil
}

// sameSource compares what two manifests say was dropped; an object of a catalog may have moved, and been recognised anew.
func sameSource(was, is layout.Source) bool {
	if samePlaces(was, is) {
		is.Place, is.Name, is.Rule = was.Place, was.Name, was.Rule
	}
	return reflect.DeepEqual(was, is)
}

// Attached reports whether now is what before was, of an item that was registered without
// content and got it. Since stays: what was done of its workflows counts.
func Attached(before, now *Execution, was, is layout.Manifest) bool {
	return was.Source.Bare() && is.Version == was.Version+1 && is.Since.Equal(was.Since) && is.Source.Drop != "" &&
		len(now.Workflows) == len(before.Workflows) && AtWork(before) == ""
}

// AtWork names a step that is in progress; "" is none.
func AtWork(x *Execution) string {
	for _, name := range x.Names() {
		for step, s := range x.Workflows[name].Steps {
			if s.Status == InProgress {
				return name + "/" + string(step)
			}
		}
	}
	return ""
}

// Underway says what keeps the item's content from being replaced: its workflow that
// goes on, or the step that runs, whatever became of its workflow; "" is nothing.
func (x *Execution) Underway() string {
	for _, name := range x.Names() {
		if x.Workflows[name].Status.UnderWay() {
			return name
		}
	}
	return AtWork(x)
}

// MendVersion is MendManifest for the commit of a new version.
func MendVersion(before, now []byte) (mended []byte, breaches []string) {
	a, errA := members(before)
	b, errB := members(now)
	if errA != nil || errB != nil {
		return before, []string{"left a " + layout.ManifestJSON + " that is more than JSON"}
	}
	for _, k := range []string{"schema", "item", "created", "parent"} {
		breaches = append(breaches, restore(a, b, k)...)
	}
	for _, k := range []string{"collection", "lane"} {
		name, _ := b[k].(string)
		if _, err := layout.ParseName(name); err != nil {
			breaches = append(breaches, restore(a, b, k)...)
		}
	}
	was, errA := layout.DecodeManifest(before)
	is, errB := layout.DecodeManifest(now)
	if len(breaches) == 0 && errA == nil && errB == nil && was.Item == is.Item && was.Created.Equal(is.Created) && reflect.DeepEqual(was.Parent, is.Parent) {
		return now, nil
	}
	mended, err := layout.EncodeJSON(b)
	if err != nil || len(breaches) == 0 {
		return before, append(breaches, "changed what the item is, in "+layout.ManifestJSON)
	}
	return mended, breaches
}
