package target

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"
	"golang.org/x/sync/errgroup"
)

const (
	partSize  = 64 << 20
	mostParts = 10_000
)

// partOf is the size of a large object's parts: in all but the largest partSize.
func partOf(size int64) int64 {
	const unit = 1 << 20
	least := (size + mostParts - 1) / mostParts
	return max(partSize, (least+unit-1)/unit*unit)
}

// upload sends a large file in parts. A part that the server has, with the SHA-256 of ours,
// is not sent again; other uploads of the key are given up once this one is complete.
func (b *bucket) upload(ctx context.Context, key string, f file, fresh bool) (err error) {
	begin := b.now()
	id, have, err := b.begun(ctx, key)
	goesOn := id != ""
	if err == nil && !goesOn {
		id, err = b.core.NewMultipartUpload(ctx, b.name, key, b.options(checksumAlgorithm, "SHA256", fresh))
	}
	if err != nil {
		return err
	}
	in, err := f.open(0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	each := partOf(f.size)
	done := make([]minio.CompletePart, (f.size+each-1)/each)
	g, gctx := errgroup.WithContext(ctx)
	for n := range done {
		select {
		case b.parts <- struct{}{}:
		case <-gctx.Done():
			return errors.Join(g.Wait(), ctx.Err())
		}
		data := make([]byte, min(each, f.size-int64(n)*each))
		if _, err := io.ReadFull(in, data); err != nil {
			<-b.parts
			return errors.Join(err, g.Wait())
		}
		g.Go(func() (err error) {
			defer func() { <-b.parts }()
			done[n], err = b.part(gctx, key, id, n+1, data, have[n+1], f.tell)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	info, err := b.core.CompleteMultipartUpload(ctx, b.name, key, id, done, b.options("", "", fresh))
	if err != nil {
		if minio.ToErrorResponse(err).StatusCode == http.StatusPreconditionFailed { // another's came first
			return cmp.Or(b.giveUp(ctx, key), err)
		}
		return err
	}
	if goesOn && b.lock.For > 0 { // the upload's own lock counts from when it was begun
		if err := lockLonger(ctx, b, key, b.traits().until(begin)); err != nil {
			return err
		}
	}
	if f.vouch != nil && b.states(ctx, key, info.ChecksumSHA256, done) {
		f.vouch()
	}
	return b.giveUp(ctx, key)
}

// states reports whether the server states the checksum of our parts' checksums.
func (b *bucket) states(ctx context.Context, key, stated string, done []minio.CompletePart) bool {
	all := sha256.New()
	for _, p := range done {
		sum, err := base64.StdEncoding.DecodeString(p.ChecksumSHA256)
		if err != nil {
			return false
		}
		all.Write(sum)
	}
	want := base64.StdEncoding.EncodeToString(all.Sum(nil))
	if stated == "" {
		o, err := b.core.StatObject(ctx, b.name, key, minio.StatObjectOptions{Checksum: true})
		if err != nil {
			return false
		}
		stated = o.ChecksumSHA256
	}
	return stated == want+"-"+strconv.Itoa(len(done))
}

// abandonedAfter is when an upload that was begun and not completed is nobody's any more.
const abandonedAfter = 7 * 24 * time.Hour

// abandoned ends the uploads of keys of ours that were begun long ago: of items that were cancelled
// or bags that were made anew. Each of others', and every error, is left to the next look.
func abandoned(ctx context.Context, b *bucket) {
	page, err := b.core.ListMultipartUploads(ctx, b.name, strings.TrimPrefix(b.prefix+"/", "/"), "", "", "", 1000)
	if err != nil {
		return
	}
	for _, u := range page.Uploads {
		if b.now().Sub(u.Initiated) > abandonedAfter && b.ours(u.Key) {
			_ = b.core.AbortMultipartUpload(ctx, b.name, u.Key, u.UploadID)
		}
	}
}

// ours reports whether a key is a place of a bag, or in a storage root that we made.
func (b *bucket) ours(key string) bool {
	name := strings.TrimPrefix(strings.TrimPrefix(key, b.prefix), "/")
	parts := strings.SplitN(name, "/", fanDepth+2)
	if parts[0] == rootFolder {
		return true
	}
	if len(parts) <= fanDepth {
		return false
	}
	base := strings.TrimSuffix(parts[fanDepth], tarEnd)
	item, version, revision, is := ParsePlace(base)
	return is && strings.Join(parts[:fanDepth+1], "/") == Revision(Place(item, version), revision)+strings.TrimPrefix(parts[fanDepth], base)
}

// part sends a part, unless the server states that it has it.
func (b *bucket) part(ctx context.Context, key, id string, n int, data []byte, had minio.ObjectPart, tell teller) (minio.CompletePart, error) {
	sum := sha256.Sum256(data)
	text := base64.StdEncoding.EncodeToString(sum[:])
	if had.ChecksumSHA256 != text || had.Size != int64(len(data)) {
		var err error
		had, err = b.core.PutObjectPart(ctx, b.name, key, id, n, bytes.NewReader(data), int64(len(data)),
			minio.PutObjectPartOptions{Sha256Hex: hex.EncodeToString(sum[:]), CustomHeader: http.Header{checksumHeader: {text}}})
		if err != nil {
			return minio.CompletePart{}, err
		}
		_, _ = tell.Write(data) // tells alone
	}
	return minio.CompletePart{PartNumber: n, ETag: had.ETag, ChecksumSHA256: text}, nil
}

// begun finds the newest upload of a key that was not completed, and its parts.
func (b *bucket) begun(ctx context.Context, key string) (id string, parts map[int]minio.ObjectPart, err error) {
	uploads, err := b.uploads(ctx, key)
	if err != nil || len(uploads) == 0 {
		return "", nil, err
	}
	newest := uploads[0]
	for _, u := range uploads {
		if u.Initiated.After(newest.Initiated) {
			newest = u
		}
	}
	parts = map[int]minio.ObjectPart{}
	for marker := 0; ; {
		page, err := b.core.ListObjectParts(ctx, b.name, key, newest.UploadID, marker, 1000)
		if err != nil {
			return "", nil, err
		}
		for _, p := range page.ObjectParts {
			parts[p.PartNumber] = p
		}
		if !page.IsTruncated {
			return newest.UploadID, parts, nil
		}
		marker = page.NextPartNumberMarker
	}
}

func (b *bucket) uploads(ctx context.Context, key string) (all []minio.ObjectMultipartInfo, err error) {
	for keyMarker, idMarker := "", ""; ; {
		page, err := b.core.ListMultipartUploads(ctx, b.name, key, keyMarker, idMarker, "", 1000)
		if err != nil {
			return nil, err
		}
		for _, u := range page.Uploads {
			if u.Key == key {
				all = append(all, u)
			}
		}
		if !page.IsTruncated {
			return all, nil
		}
		keyMarker, idMarker = page.NextKeyMarker, page.NextUploadIDMarker
	}
}

// giveUp ends the abandoned uploads of a key.
func (b *bucket) giveUp(ctx context.Context, key string) error {
	uploads, err := b.uploads(ctx, key)
	for _, u := range uploads {
		if err == nil {
			err = b.core.AbortMultipartUpload(ctx, b.name, key, u.UploadID)
		}
	}
	return err
}

// bodies takes the body of a request back once it is answered: of one that was answered early the transport may still read, and the
// library winds it back to send it again.
type bodies struct{ http.RoundTripper }

func (t bodies) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		return t.RoundTripper.RoundTrip(r)
	}
	own, body := *r, &lentBody{ReadCloser: r.Body}
	own.Body, own.GetBody = body, nil
	defer body.takeBack()
	return t.RoundTripper.RoundTrip(&own)
}

// lentBody can be read until it is taken back.
type lentBody struct {
	mu sync.Mutex
	io.ReadCloser
	back bool
}

func (b *lentBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.back {
		return 0, io.ErrClosedPipe
	}
	return b.ReadCloser.Read(p)
}

func (b *lentBody) takeBack() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.back = true
}
