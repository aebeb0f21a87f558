package steps

import (
	"errors"
	"io/fs"
	"os"

	"bagpipe/steps/target"
)

// A bag made anew differs from the deposited one in its date, and where the metadata
// changed in its tag files. The rules are:
//
//   - a bag that differs in the labels of its making alone is the deposited one: the
//     stored bag stays as it is;
//   - a bag of the same payload with other tag files is a revision: ID-r2 beside ID, then
//     ID-r3; of a later version ID-v2-r2;
//   - a bag of another payload is never put beside: it is a system failure, as a new
//     payload is a new version.

// findRevision looks for the item's own bag among the revisions in the store, and answers
// the first free place when there is none like it.
func findRevision(from, to string) (at string, how target.Likeness, err error) {
	for n := 1; ; n++ {
		at = target.Revision(to, n)
		if _, err := os.Lstat(at); errors.Is(err, fs.ErrNotExist) {
			return at, target.RevisedBag, nil
		} else if err != nil {
			return "", target.OtherBag, err
		}
		how, err = target.Compare(from, at)
		if err != nil || how != target.RevisedBag {
			return at, how, err
		}
	}
}

// newestRevision is the last of a bag's revisions in the store; to itself when there is
// none.
func newestRevision(to string) string {
	for n := 2; ; n++ {
		if _, err := os.Lstat(target.Revision(to, n)); err != nil {
			return target.Revision(to, n-1)
		}
	}
}
