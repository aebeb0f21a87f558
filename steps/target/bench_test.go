package target_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"bagpipe/bags"
	"bagpipe/steps/target"
	"bagpipe/steps/target/targettest"
	"bagpipe/testdata/sample"
)

// The benchmarks print what the peer takes by what a target takes, on the same disk, beside it:
// 1.00 x-peer is as fast, more is faster. BAGPIPE_BENCH_MIB is the size of the large file (256).

func benchMiB() int {
	if n, err := strconv.Atoi(os.Getenv("BAGPIPE_BENCH_MIB")); err == nil {
		return n
	}
	return 256
}

// benchBag is a bag of many files or one.
func benchBag(b *testing.B, files int, size int64) target.Bag {
	b.Helper()
	from, dir := sample.TempDir(b), filepath.Join(sample.TempDir(b), string(targettest.Item))
	block := make([]byte, 1<<20)
	for i := range files {
		for k := range block {
			block[k] = byte(k*7 + k>>9 + i*31)
		}
		at := filepath.Join(from, fmt.Sprintf("%02d", i%50), fmt.Sprintf("file-%05d", i))
		must(b, os.MkdirAll(filepath.Dir(at), 0o755))
		f, err := os.Create(at)
		must(b, err)
		for left := size; left > 0; left -= int64(len(block)) {
			n := min(left, int64(len(block)))
			block[0], block[1], block[2] = byte(left>>20), byte(left>>28), byte(i>>8)
			_, err := f.Write(block[:n])
			must(b, err)
		}
		must(b, f.Close())
	}
	_, err := bags.Create(b.Context(), bags.CreateOptions{Payload: from, Dest: dir, Date: targettest.Now(), Agent: "Bagpipe"})
	must(b, err)
	return target.Bag{Item: targettest.Item, Version: 1, Dir: dir, By: "bench", Message: "deposit", At: targettest.Now()}
}

// against runs ours and the peer in turns, and reports their ratio.
func against(b *testing.B, ours, peer func(n int)) {
	var own, other time.Duration
	for n := 0; b.Loop(); n++ {
		began := time.Now()
		peer(n)
		other += time.Since(began)
		began = time.Now()
		ours(n)
		own += time.Since(began)
	}
	b.ReportMetric(float64(other)/float64(own), "x-peer")
	b.ReportMetric(own.Seconds()/float64(b.N), "s-ours")
	b.ReportMetric(other.Seconds()/float64(b.N), "s-peer")
}

func run(b *testing.B, name string, args ...string) {
	b.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "AWS_") }) // of this machine's own clients
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%s: %v: %s", name, err, out)
	}
}

func putOn(b *testing.B, to target.Target, bag target.Bag) {
	b.Helper()
	_, err := to.Put(context.Background(), bag)
	must(b, err)
}

// BenchmarkFolder is beside cp -a, a sync, and sha512sum of the copy.
func BenchmarkFolder(b *testing.B) {
	bag := benchBag(b, 1000, int64(benchMiB())<<20/1000)
	for _, form := range []string{target.LayoutBag, target.LayoutTar, target.LayoutOCFL} {
		b.Run(form, func(b *testing.B) {
			dir := sample.TempDir(b)
			against(b, func(n int) {
				to, err := target.Open("bench", target.Config{Kind: target.KindFolder, Layout: form, Path: filepath.Join(dir, fmt.Sprint("ours", n))}, time.Now)
				must(b, err)
				putOn(b, to, bag)
			}, func(n int) {
				at := filepath.Join(dir, fmt.Sprint("peer", n))
				run(b, "cp", "-a", bag.Dir, at)
				run(b, "sync", "-f", at)
				run(b, "sh", "-c", `find "$0" -type f -print0 | xargs -0 sha512sum >/dev/null`, at)
			})
		})
	}
}

// BenchmarkVersion adds a version in which one file of 20,000 changed: the part of the bytes that is
// written, in per cent, and the bytes that are written a file of the bag: its line in two inventories and in the
// bag's manifests, of 1 GiB or as much as BAGPIPE_BENCH_MIB says. The part is below 1 % where a file has a hundred times as many on the average.
func BenchmarkVersion(b *testing.B) {
	const files = 20_000
	vault := filepath.Join(sample.TempDir(b), "vault")
	bag := benchBag(b, files, int64(max(benchMiB(), 1024))<<20/files)
	to, err := target.Open("bench", target.Config{Kind: target.KindFolder, Layout: target.LayoutOCFL, Path: vault}, time.Now)
	must(b, err)
	c, err := to.Put(b.Context(), bag)
	must(b, err)
	second := bag
	second.Dir, second.Version = filepath.Join(sample.TempDir(b), string(targettest.Item)), 2
	run(b, "cp", "-a", filepath.Join(bag.Dir, "data"), second.Dir)
	must(b, os.WriteFile(filepath.Join(second.Dir, "00/file-00000"), []byte("changed"), 0o644))
	payload := second.Dir
	second.Dir = filepath.Join(sample.TempDir(b), string(targettest.Item))
	_, err = bags.Create(b.Context(), bags.CreateOptions{Payload: payload, Dest: second.Dir, Date: targettest.Now(), Agent: "Bagpipe"})
	must(b, err)
	for b.Loop() {
		made, err := to.Put(b.Context(), second)
		must(b, err)
		c.Bytes = made.Bytes
	}
	root, err := filepath.Glob(filepath.Join(vault, "ocfl/???/???/???/*"))
	must(b, err)
	written := int64(0)
	for _, object := range root {
		for _, at := range []string{filepath.Join(object, "v2"), filepath.Join(object, "inventory.json")} {
			must(b, filepath.WalkDir(at, func(_ string, d fs.DirEntry, err error) error {
				if err == nil && !d.IsDir() {
					info, err := d.Info()
					must(b, err)
					written += info.Size()
				}
				return err
			}))
		}
	}
	b.ReportMetric(100*float64(written)/float64(c.Bytes), "%-written")
	b.ReportMetric(float64(written)/files, "B-a-file")
}

// BenchmarkValidate judges an OCFL storage root beside a bag of the same bytes.
func BenchmarkValidate(b *testing.B) {
	bag := benchBag(b, 1000, int64(benchMiB())<<20/1000)
	dir := filepath.Join(sample.TempDir(b), "vault")
	to, err := target.Open("bench", target.Config{Kind: target.KindFolder, Layout: target.LayoutOCFL, Path: dir}, time.Now)
	must(b, err)
	putOn(b, to, bag)
	against(b, func(int) {
		r, err := target.ValidateOCFL(b.Context(), filepath.Join(dir, "ocfl"), false)
		if err != nil || !r.Valid {
			b.Fatal(err, r)
		}
	}, func(int) {
		r, err := bags.Validate(b.Context(), bag.Dir, bags.ValidateOptions{})
		if err != nil || !r.Valid {
			b.Fatal(err)
		}
	})
}

// BenchmarkCheck reads a copy beside bag validate.
func BenchmarkCheck(b *testing.B) {
	bag := benchBag(b, 1000, int64(benchMiB())<<20/1000)
	to, err := target.Open("bench", target.Config{Kind: target.KindFolder, Path: filepath.Join(sample.TempDir(b), "vault")}, time.Now)
	must(b, err)
	c, err := to.Put(b.Context(), bag)
	must(b, err)
	against(b, func(int) {
		_, _, err := to.Check(b.Context(), c, target.Read)
		must(b, err)
	}, func(int) {
		r, err := bags.Validate(b.Context(), bag.Dir, bags.ValidateOptions{})
		if err != nil || !r.Valid {
			b.Fatal(err)
		}
	})
}

// BenchmarkS3 is beside rclone with as many streams and parts as large.
func BenchmarkS3(b *testing.B) {
	rclone, err := exec.LookPath("rclone")
	if err != nil {
		b.Skip(err)
	}
	for name, bag := range map[string]func(*testing.B) target.Bag{
		"large": func(b *testing.B) target.Bag { return benchBag(b, 1, int64(benchMiB())<<20) },
		"small": func(b *testing.B) target.Bag { return benchBag(b, 5000, 4096) },
	} {
		b.Run(name, func(b *testing.B) {
			bag, s := bag(b), targettest.NewS3(b, false)
			secret, err := os.ReadFile(s.Secrets)
			must(b, err)
			lines := strings.Fields(string(secret))
			against(b, func(n int) {
				c := target.Config{Kind: target.KindS3, Secrets: s.Secrets, S3Config: s.S3Config}
				c.Prefix = fmt.Sprint("ours", n)
				to, err := target.Open("bench", c, time.Now)
				must(b, err)
				putOn(b, to, bag)
			}, func(n int) {
				run(b, rclone, "copy", "--config", "/dev/null", "--transfers", "4", "--checkers", "4", "--s3-upload-concurrency", "4", "--s3-chunk-size", "64M", "--s3-provider", "Other", "--s3-endpoint", s.Endpoint,
					"--s3-access-key-id", lines[1], "--s3-secret-access-key", lines[3], "--s3-force-path-style", bag.Dir, fmt.Sprintf(":s3:%s/peer%d", s.Bucket, n))
			})
		})
	}
}

// BenchmarkSFTP is beside rclone with as many streams: where the server digests, rclone has it do so,
// too; where what was sent is read back, rclone does that by its check.
func BenchmarkSFTP(b *testing.B) {
	rclone, err := exec.LookPath("rclone")
	if err != nil {
		b.Skip(err)
	}
	bag, s, dir := benchBag(b, 1, int64(benchMiB())<<20), targettest.NewSSHD(b), sample.TempDir(b)
	host, port, _ := strings.Cut(s.Host, ":")
	for _, verify := range []string{"remote", "read"} {
		b.Run(verify, func(b *testing.B) {
			against(b, func(n int) {
				to, err := target.Open("bench", target.Config{Kind: target.KindSFTP, Path: filepath.Join(dir, fmt.Sprint(verify, n)), SFTPConfig: s, Outlet: target.Outlet{Verify: verify}}, time.Now)
				must(b, err)
				putOn(b, to, bag)
				must(b, to.Close())
			}, func(n int) {
				does := func(what ...string) {
					run(b, rclone, append(what, "--config", "/dev/null", "--transfers", "4", "--sftp-host", host, "--sftp-port", port, "--sftp-user", s.User, "--sftp-key-file", s.Key, bag.Dir, fmt.Sprintf(":sftp:%s/peer-%s%d", dir, verify, n))...)
				}
				does("copy")
				if verify == "read" {
					does("check", "--download")
				}
			})
		})
	}
}
