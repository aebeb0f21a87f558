package target

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"bagpipe/bags/files"
	"bagpipe/layout"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// bucket is a backend in an S3 bucket. The rules are:
//
//   - a key is the file's name, percent-encoded as in records: keys are UTF-8;
//   - nothing is overwritten: If-None-Match on put and complete, and 412 is fs.ErrExist; a delete
//     marker, which some servers take for an object, is written over where versions are kept;
//   - every put carries its SHA-256, every part its own; an ETag is never taken for a digest. What
//     the server states of them is compared with ours, and then not read back;
//   - above partSize an upload is in parts. One that was interrupted is gone on with: the
//     server's list of its parts is the journal, and a part counts whose SHA-256 it states;
//   - with a lock each object is put with its retention, which is never shortened; what stands there already of a copy
//     that is made or mended is locked for as long.
type bucket struct {
	core    *minio.Core
	creds   *credentials.Credentials
	name    string
	prefix  string
	streams int
	lock    LockConfig
	keeps   bool // older versions
	now     func() time.Time
	parts   chan struct{} // a place for each part in memory
}

const (
	s3Streams = 4
	s3Retries = 4
)

func openS3(name layout.Name, c Config, now func() time.Time) (*bucket, error) {
	s, err := c.readSecrets(name)
	if err != nil {
		return nil, err
	}
	if s.AccessKey == "" || s.SecretKey == "" {
		return nil, &Down{fmt.Errorf("the target's accessKey and secretKey are neither in the settings' {env: …} or {file: …}, nor in secrets:, nor in the environment")}
	}
	u, err := url.Parse(c.Endpoint)
	if err != nil {
		return nil, err
	}
	transport, err := minio.DefaultTransport(u.Scheme == "https")
	if err != nil {
		return nil, err
	}
	dial := transport.DialContext
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &idle{c}, nil
	}
	if c.CA != "" {
		if err := trust(transport, c.CA); err != nil {
			return nil, err
		}
	}
	style := map[string]minio.BucketLookupType{"": minio.BucketLookupAuto, "path": minio.BucketLookupPath, "host": minio.BucketLookupDNS}[c.Style]
	creds := credentials.New(loginKeys{name: name, config: c})
	core, err := minio.NewCore(u.Host, &minio.Options{Creds: creds,
		Secure: u.Scheme == "https", Transport: bodies{transport}, Region: cmp.Or(c.Region, "us-east-1"), BucketLookup: style, MaxRetries: s3Retries})
	if err != nil {
		return nil, err
	}
	b := &bucket{core: core, creds: creds, name: c.Bucket, prefix: strings.Trim(c.Prefix, "/"), streams: cmp.Or(c.Streams, s3Streams), lock: c.Lock, now: now}
	b.parts = make(chan struct{}, b.streams)
	return b, b.check()
}

// loginKeys gives a bucket's keys as they are now. They are asked for anew once the server has refused those before: a
// running program goes on with the keys that were renewed in their file.
type loginKeys struct {
	name   layout.Name
	config Config
}

func (k loginKeys) Retrieve() (v credentials.Value, err error) {
	s, err := k.config.readSecrets(k.name)
	return credentials.Value{AccessKeyID: string(s.AccessKey), SecretAccessKey: string(s.SecretKey), SessionToken: string(s.SessionToken), SignerType: credentials.SignatureV4}, err
}

func (k loginKeys) RetrieveWithCredContext(*credentials.CredContext) (credentials.Value, error) {
	return k.Retrieve()
}

// IsExpired leaves it to the server to say so.
func (loginKeys) IsExpired() bool { return false }

// trust adds certificates to those of the system.
func trust(t *http.Transport, file string) error {
	pem, err := os.ReadFile(file)
	if err != nil {
		return &Down{err}
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return &Down{fmt.Errorf("%s holds no certificate", layout.EncodePath(file))}
	}
	if t.TLSClientConfig == nil {
		t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	t.TLSClientConfig.RootCAs = pool
	return nil
}

// openTimeout bounds the look at a bucket.
const openTimeout = 30 * time.Second

// check looks whether the bucket is there, and locks where it must.
func (b *bucket) check() error {
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	there, err := b.core.BucketExists(ctx, b.name)
	if err != nil {
		return b.failed(err)
	}
	if !there {
		return &Down{fmt.Errorf("there is no bucket %s", b.name)}
	}
	if v, err := b.core.GetBucketVersioning(ctx, b.name); err == nil { // some servers know nothing of it
		b.keeps = v.Enabled()
	}
	abandoned(ctx, b)
	if b.lock == (LockConfig{}) {
		return nil
	}
	state, _, _, _, err := b.core.GetObjectLockConfig(ctx, b.name)
	if err != nil || state != "Enabled" {
		return &Down{fmt.Errorf("the bucket %s has no object lock, and lock: asks for it", b.name)}
	}
	return nil
}

func (b *bucket) traits() traits {
	return traits{vouches: true, streams: b.streams, retention: time.Duration(b.lock.For)}
}

func (b *bucket) close() error { return nil }

func (b *bucket) key(name string) string {
	if b.prefix == "" {
		return layout.EncodePath(name)
	}
	return b.prefix + "/" + layout.EncodePath(name)
}

// below is what the keys of a folder begin with.
func (b *bucket) below(dir string) string {
	if at := strings.Trim(b.key(dir), "/"); at != "" {
		return at + "/"
	}
	return ""
}

// failed gives S3's errors their meaning.
func (b *bucket) failed(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	var r minio.ErrorResponse
	errors.As(err, &r)                                                                                              // also among others
	if slices.Contains([]int{http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden}, r.StatusCode) { // a HEAD has no code that says more
		b.creds.Expire()
	}
	switch {
	case r.Code == "NoSuchKey" || r.Code == "NoSuchVersion":
		return fs.ErrNotExist
	case r.Code == "InvalidRange":
		return damage("it is shorter than it was")
	case r.StatusCode == http.StatusPreconditionFailed:
		return fs.ErrExist
	case r.Code == "NoSuchBucket":
		return &Down{fmt.Errorf("there is no bucket %s", b.name)}
	case r.Code != "":
		return &Down{fmt.Errorf("%s: %s", r.Code, r.Message)}
	}
	var at *url.Error
	if errors.As(err, &at) {
		err = at.Err // its URL may hold a signature
	}
	return &Down{err}
}

func (b *bucket) open(ctx context.Context, name string, offset int64) (reader, error) {
	var o minio.GetObjectOptions
	if offset > 0 {
		if err := o.SetRange(offset, 0); err != nil {
			return nil, err
		}
	}
	r, _, _, err := b.core.GetObject(ctx, b.name, b.key(name), o)
	if err != nil {
		return nil, b.failed(err)
	}
	return &bucketReader{r, b}, nil
}

// bucketReader gives the errors of a read their meaning: a connection that is cut is no
// damage.
type bucketReader struct {
	reader
	b *bucket
}

func (r *bucketReader) Read(p []byte) (int, error) {
	n, err := r.reader.Read(p)
	if err != nil && err.Error() != "EOF" {
		err = r.b.failed(err)
	}
	return n, err
}

func (r *bucketReader) Close() error { return r.b.failed(r.reader.Close()) }

func (b *bucket) list(ctx context.Context, dir string, deep bool, each func(string, int64) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop() // ends the listing
	at := b.below(dir)
	for o := range b.core.Client.ListObjects(ctx, b.name, minio.ListObjectsOptions{Prefix: at, Recursive: deep}) {
		if o.Err != nil {
			return b.failed(o.Err)
		}
		name := strings.TrimPrefix(o.Key, at)
		if name == "" || strings.HasSuffix(name, "/") {
			continue
		}
		name, err := layout.DecodePath(name)
		if err != nil {
			return damage("%s is no key of ours", o.Key)
		}
		if err := each(name, o.Size); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (b *bucket) survey(ctx context.Context, dir string) (survey, error) {
	s := survey{files: map[string]int64{}}
	return s, b.list(ctx, dir, true, func(name string, size int64) error {
		s.files[name] = size
		return nil
	})
}

func (b *bucket) folders(ctx context.Context, dir string) (names []string, err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop() // ends the listing
	at := b.below(dir)
	for o := range b.core.Client.ListObjects(ctx, b.name, minio.ListObjectsOptions{Prefix: at}) {
		if o.Err != nil {
			return nil, b.failed(o.Err)
		}
		if name, is := strings.CutSuffix(strings.TrimPrefix(o.Key, at), "/"); is && name != "" {
			if name, err = layout.DecodePath(name); err != nil {
				return nil, damage("%s is no key of ours", o.Key)
			}
			names = append(names, name)
		}
	}
	return names, ctx.Err()
}

// options are those of every object; header is sent with it. If fresh, it is refused where one
// stands.
func (b *bucket) options(header, value string, fresh bool) minio.PutObjectOptions {
	o := minio.PutObjectOptions{ContentType: "application/octet-stream"}
	if header != "" {
		o.UserMetadata = map[string]string{header: value} // sent as it is
	}
	if fresh {
		o.SetMatchETagExcept("*")
	}
	if b.lock.For > 0 {
		o.Mode, o.RetainUntilDate = minio.RetentionMode(strings.ToUpper(b.lock.Mode)), b.now().Add(time.Duration(b.lock.For))
	}
	return o
}

func (b *bucket) prolong(ctx context.Context, name string, until time.Time) error {
	return b.failed(lockLonger(ctx, b, b.key(name), until))
}

func (b *bucket) lockedUntil(ctx context.Context, name string) (time.Time, error) {
	_, until, err := retentionAt(ctx, b, b.key(name))
	return until, b.failed(err)
}

// lockLonger locks an object until a time. A lock for longer stays, and so does a mode that is stricter.
func lockLonger(ctx context.Context, b *bucket, key string, until time.Time) error {
	mode, was, err := retentionAt(ctx, b, key)
	if err != nil || !was.Before(until) {
		return err
	}
	if mode != minio.Compliance {
		mode = minio.RetentionMode(strings.ToUpper(b.lock.Mode))
	}
	return b.core.PutObjectRetention(ctx, b.name, key, minio.PutObjectRetentionOptions{Mode: &mode, RetainUntilDate: &until})
}

// retentionAt is an object's lock, as its headers state it: the answers to a question for it alone differ among servers.
func retentionAt(ctx context.Context, b *bucket, key string) (mode minio.RetentionMode, until time.Time, err error) {
	o, err := b.core.StatObject(ctx, b.name, key, minio.StatObjectOptions{})
	if text := o.Metadata.Get("X-Amz-Object-Lock-Retain-Until-Date"); err == nil && text != "" {
		until, err = time.Parse(time.RFC3339, text)
	}
	return minio.RetentionMode(o.Metadata.Get("X-Amz-Object-Lock-Mode")), until, err
}

// write makes an object. A server may refuse it as if it were there over a delete marker; where
// the bucket keeps versions, nothing is lost by writing it all the same.
func (b *bucket) write(ctx context.Context, name string, f file) error {
	err := b.failed(b.put(ctx, b.key(name), f, true))
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if _, serr := b.core.StatObject(ctx, b.name, b.key(name), minio.StatObjectOptions{}); !errors.Is(b.failed(serr), fs.ErrNotExist) {
		return err
	}
	if b.keeps {
		if err = b.failed(b.put(ctx, b.key(name), f, false)); !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return &Down{fmt.Errorf("%s was refused as if it were there, and is not", layout.EncodePath(name))}
}

// put sends a file, as a whole or in parts; if fresh, where nothing stands.
func (b *bucket) put(ctx context.Context, key string, f file, fresh bool) error {
	if f.size > partSize {
		return b.upload(ctx, key, f, fresh)
	}
	select {
	case b.parts <- struct{}{}:
		defer func() { <-b.parts }()
	case <-ctx.Done():
		return ctx.Err()
	}
	in, err := told(f.open(0))(f.tell)
	if err != nil {
		return err
	}
	data := make([]byte, f.size)
	_, err = io.ReadFull(in, data)
	if err := errors.Join(err, in.Close()); err != nil {
		return err
	}
	sum := sha256.Sum256(data)
	text := base64.StdEncoding.EncodeToString(sum[:])
	info, err := b.core.PutObject(ctx, b.name, key, bytes.NewReader(data), f.size, "", hex.EncodeToString(sum[:]), b.options(checksumHeader, text, fresh))
	if err == nil && f.vouch != nil && info.ChecksumSHA256 == text {
		f.vouch()
	}
	return err
}

func (b *bucket) digests(context.Context, string, []string, files.Algorithm, func(int, []byte) error) (bool, error) {
	return false, nil // what it stated once says nothing of the bytes now
}

func (b *bucket) version(ctx context.Context, name string) (string, error) {
	if !b.keeps {
		return "", nil
	}
	o, err := b.core.StatObject(ctx, b.name, b.key(name), minio.StatObjectOptions{})
	return o.VersionID, b.failed(err)
}

func (b *bucket) poor() []string { return nil }

const (
	checksumHeader    = "X-Amz-Checksum-Sha256"
	checksumAlgorithm = "X-Amz-Checksum-Algorithm"
)

func (b *bucket) replace(ctx context.Context, name string, data []byte) error {
	sum := sha256.Sum256(data)
	o := b.options(checksumHeader, base64.StdEncoding.EncodeToString(sum[:]), false)
	_, err := b.core.PutObject(ctx, b.name, b.key(name), bytes.NewReader(data), int64(len(data)), "", hex.EncodeToString(sum[:]), o)
	if err = b.failed(err); errors.Is(err, fs.ErrExist) {
		return &Down{fmt.Errorf("%s was refused as if it were not to be replaced", layout.EncodePath(name))}
	}
	return err
}

func (b *bucket) settle(context.Context, string) error { return nil }

// rename sets a damaged object aside: where the bucket keeps older versions, as one of them.
func (b *bucket) rename(ctx context.Context, from, to string) error {
	var names []string
	err := b.list(ctx, from, true, func(below string, _ int64) error {
		names = append(names, "/"+below)
		return nil
	})
	if err != nil {
		return err
	}
	if len(names) == 0 {
		names = []string{""}
	}
	for _, name := range names {
		if !b.keeps {
			_, err := b.core.ComposeObject(ctx, minio.CopyDestOptions{Bucket: b.name, Object: b.key(to + name)}, minio.CopySrcOptions{Bucket: b.name, Object: b.key(from + name)})
			if err = b.failed(err); err != nil {
				return err
			}
		}
		if err := b.failed(b.core.RemoveObject(ctx, b.name, b.key(from+name), minio.RemoveObjectOptions{})); err != nil {
			return err
		}
	}
	return nil
}

func (b *bucket) remove(ctx context.Context, name string) error {
	var names []string
	err := b.list(ctx, name, true, func(below string, _ int64) error {
		names = append(names, path.Join(name, below))
		return nil
	})
	for _, n := range append(names, name) {
		if err == nil {
			err = b.failed(b.core.RemoveObject(ctx, b.name, b.key(n), minio.RemoveObjectOptions{}))
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return err
}
