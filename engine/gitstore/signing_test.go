package gitstore

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
)

// Of commits that are made together the last is signed, or each where that is asked; and what was signed is
// the commit without its signature.
func TestEveryCommitOrTheLastOfAGroupIsSigned(t *testing.T) {
	for _, all := range []bool{false, true} {
		root := initRoot(t, testOptions(), nil)
		o := testOptions()
		var mu sync.Mutex // guards of and signed
		of, signed := map[string]string{}, 0
		o.Signing = Signing{SignAll: all, Sign: func(commit []byte) (string, error) {
			mu.Lock()
			defer mu.Unlock()
			signed++
			armored := fmt.Sprintf("-----BEGIN SSH SIGNATURE-----\n%d\n-----END SSH SIGNATURE-----", signed)
			of[armored] = string(commit)
			return armored, nil
		}}
		s := openRoot(t, root, o)
		first := tipOf(t, s)
		var together sync.WaitGroup
		const many = 40
		for i := range many {
			together.Go(func() {
				if _, err := tryPut(s, fmt.Sprint("f", i), "x"); err != nil {
					t.Error(err)
				}
			})
		}
		together.Wait()
		commits, err := ParentsFirst(context.Background(), root, tipOf(t, s), first)
		if err != nil || len(commits) != many {
			t.Fatalf("%d commits, %v", len(commits), err)
		}
		with := 0
		for i, h := range commits {
			v, err := s.At(h)
			if err != nil {
				t.Fatal(err)
			}
			payload, armored, err := v.Signed()
			if err != nil {
				t.Fatal(err)
			}
			if armored != "" {
				if with++; of[armored] != string(payload) {
					t.Errorf("commit %s: its signature is of another: %q, not %q", h, of[armored], payload)
				}
			}
			if armored == "" && (all || i == many-1) {
				t.Errorf("all %t: commit %d of %d is not signed", all, i+1, many)
			}
		}
		if !all && with == many {
			t.Log("each commit was a group of its own")
		}
		if said := git(t, root, "fsck", "--strict", "--no-dangling"); strings.TrimSpace(said) != "" {
			t.Error(said)
		}
	}
}
