package engine_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"bagpipe/engine/gitstore"
	"bagpipe/engine/trust"
)

const (
	signedTogether = 100 // commits of a group
	signedGroups   = 40
)

// BenchmarkSigning tells how many commits a second the store makes in groups of 100: unsigned, the
// last of each group signed by a key file, and every one; and how many a second the key alone signs.
// The three take turns and the medians are told, with the ratios to the unsigned; and the
// processor's time of a commit, which is that of a machine with nothing else to do, too.
func BenchmarkSigning(b *testing.B) {
	key := signingKey(b)
	ways := []gitstore.Signing{{}, {Sign: key.Sign}, {Sign: key.Sign, SignAll: true}}
	var took, used [3][]time.Duration
	for b.Loop() {
		for i, way := range ways {
			before := processorTime(b)
			took[i] = append(took[i], commitGroups(b, way))
			used[i] = append(used[i], processorTime(b)-before)
		}
	}
	each := func(of []time.Duration) float64 {
		slices.Sort(of)
		return of[len(of)/2].Seconds() / (signedGroups * signedTogether)
	}
	unsigned, grouped, every := each(took[0]), each(took[1]), each(took[2])
	begin, payload := time.Now(), bytes.Repeat([]byte("x"), 600)
	for range signedTogether {
		if _, err := key.Sign(payload); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(1/unsigned, "unsigned/s")
	b.ReportMetric(1/grouped, "by-group/s")
	b.ReportMetric(unsigned/grouped, "by-group-of-unsigned")
	b.ReportMetric(1/every, "every/s")
	for i, name := range []string{"unsigned", "by-group", "every"} {
		b.ReportMetric(1e6*each(used[i]), name+"-cpu-µs")
	}
	b.ReportMetric(signedTogether/time.Since(begin).Seconds(), "signatures/s")
}

// processorTime is what this process has had of the processor.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// commitGroups commits records of an item's size, a hundred callers at a time.
func commitGroups(b *testing.B, way gitstore.Signing) time.Duration {
	root := filepath.Join(b.TempDir(), "w")
	o := gitstore.Options{Now: time.Now, Signing: way}
	if err := gitstore.Init(context.Background(), root, o, map[string][]byte{"bagpipe.yaml": []byte("schema: 1\n")}, "start", gitstore.Signature{}); err != nil {
		b.Fatal(err)
	}
	s, err := gitstore.Open(root, o)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	record := bytes.Repeat([]byte("0123456789abcde\n"), 128)
	begin := time.Now()
	for g := range signedGroups {
		var wg sync.WaitGroup
		for i := range signedTogether {
			wg.Go(func() {
				dir := fmt.Sprintf("items/%x/%x/%x/%x/", i%16, i/16%16, g%16, g/16)
				_, err := s.Commit(context.Background(), func(gitstore.Reader) (*gitstore.Change, error) {
					return &gitstore.Change{Files: map[string][]byte{dir + "x/execution.json": append(fmt.Appendf(nil, "%d %d\n", g, i), record...)}, Message: "step: completed\n"}, nil
				})
				if err != nil {
					b.Error(err)
				}
			})
		}
		wg.Wait()
	}
	return time.Since(begin)
}

// signingKey is an ed25519 key in a file.
func signingKey(b *testing.B) *trust.Key {
	_, secret, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		b.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(secret, "")
	if err != nil {
		b.Fatal(err)
	}
	file := filepath.Join(b.TempDir(), "key")
	if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
		b.Fatal(err)
	}
	key, err := trust.OpenKey(file)
	if err != nil {
		b.Fatal(err)
	}
	return key
}
