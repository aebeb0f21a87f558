package targettest

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"golang.org/x/sys/unix"

	"bagpipe/steps/target"
)

// S3 is a server in a process of its own.
type S3 struct {
	target.S3Config        // of a bucket that is there
	Dir             string // what the server keeps
	Secrets         string // a file
	Client          *minio.Client
}

const (
	accessKey = "archive"
	secretKey = "secret-of-the-suite"
)

// built is the server's program; it is built once, below .cache of the module.
var built = sync.OnceValues(func() (string, error) {
	module, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	root := filepath.Dir(string(module))
	sums, err := os.ReadFile(filepath.Join(root, "testdata/s3/go.sum"))
	if err != nil {
		return "", err
	}
	at := filepath.Join(root, fmt.Sprintf(".cache/test/versitygw-%08x-%s", crc32.ChecksumIEEE(sums), runtime.Version()))
	if _, err := os.Stat(at); err == nil {
		return at, nil
	}
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return "", err
	}
	made := fmt.Sprintf("%s.%d", at, os.Getpid()) // several tests build it at once
	cmd := exec.Command("go", "build", "-o", made, "github.com/versity/versitygw/cmd/versitygw")
	cmd.Dir = filepath.Join(root, "testdata/s3")
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod -trimpath", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the S3 server: %w: %s", err, out)
	}
	return at, os.Rename(made, at)
})

// NewS3 starts a server with an empty bucket, one with object lock if asked; it ends with
// the test. options are the program's beside. Where it cannot be built the test is skipped.
func NewS3(t testing.TB, lock bool, options ...string) *S3 {
	t.Helper()
	return NewS3In(t, t.TempDir(), lock, options...)
}

// NewS3In is NewS3 of a server that keeps all in a folder.
func NewS3In(t testing.TB, dir string, lock bool, options ...string) *S3 {
	t.Helper()
	program, err := built()
	if err != nil {
		t.Skip(err)
	}
	s := &S3{Dir: dir, Secrets: filepath.Join(t.TempDir(), "secrets.yaml")}
	must(t, os.WriteFile(s.Secrets, []byte("accessKey: "+accessKey+"\nsecretKey: "+secretKey+"\n"), 0o600))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	address := l.Addr().String()
	must(t, l.Close())
	must(t, os.Mkdir(filepath.Join(s.Dir, "buckets"), 0o755))
	args := append([]string{"--port", address, "--access", accessKey, "--secret", secretKey, "--quiet"}, options...)
	args = append(args, "posix")
	if errors.Is(unix.Setxattr(s.Dir, "user.is", []byte("there"), 0), unix.ENOTSUP) {
		args = append(args, "--sidecar", filepath.Join(s.Dir, "sidecar")) // it hides what is written over a delete marker
		must(t, os.Mkdir(filepath.Join(s.Dir, "sidecar"), 0o755))
	}
	must(t, os.Mkdir(filepath.Join(s.Dir, "versions"), 0o755))
	args = append(args, "--versioning-dir", filepath.Join(s.Dir, "versions"), filepath.Join(s.Dir, "buckets"))
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stderr = os.Stderr
	must(t, cmd.Start())
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // it was killed
	})
	s.Endpoint, s.Bucket, s.Style = "http://"+address, "archive", "path"
	s.Client, err = minio.New(address, &minio.Options{Creds: credentials.NewStaticV4(accessKey, secretKey, ""), Region: "us-east-1", BucketLookup: minio.BucketLookupPath})
	must(t, err)
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) { // another process: there is no signal
		if err = s.Client.MakeBucket(t.Context(), s.Bucket, minio.MakeBucketOptions{ObjectLocking: lock}); err == nil {
			return s
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}
