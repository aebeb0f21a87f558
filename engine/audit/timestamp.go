package audit

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"strings"
	"time"

	"bagpipe/engine/fault"
	"bagpipe/engine/gitstore"
	"bagpipe/engine/ledger"
	"bagpipe/layout"
)

// The messages are those of RFC 3161.

type imprint struct {
	Algorithm pkix.AlgorithmIdentifier
	Digest    []byte
}

type timeRequest struct {
	Version int
	Imprint imprint
	Nonce   *big.Int
	Cert    bool
}

type timeReply struct {
	Status struct {
		Status int
		Text   asn1.RawValue `asn1:"optional"`
		Fail   asn1.RawValue `asn1:"optional"`
	}
	Token asn1.RawValue `asn1:"optional"`
}

const (
	askPatience  = 30 * time.Second
	maxTimestamp = 1 << 20
)

// Timestamp has an authority at url say when an anchor was there, and commits what it answers
// as anchors/NAME.tsr: openssl ts -verify holds it against the tag's bytes.
func (a *Auditor) Timestamp(ctx context.Context, name, url string) (path string, err error) {
	tag, _, err := gitstore.Object(ctx, a.ledger.Root, "tag", "refs/tags/"+name)
	if err != nil {
		return "", err
	}
	reply, err := askTime(ctx, url, tag)
	if err != nil {
		return "", fault.New(fault.Busy, fmt.Sprintf("anchor %s has no time stamp: %v", name, err))
	}
	path = layout.AnchorsDir + strings.TrimPrefix(name, strings.TrimSuffix(layout.AnchorTags, "/")) + ".tsr"
	who := a.ledger.ByPerson()
	_, err = a.ledger.Store.Commit(ctx, func(gitstore.Reader) (*gitstore.Change, error) {
		return &gitstore.Change{Files: map[string][]byte{path: reply}, Author: who.Author,
			Message: ledger.Message("anchor: a time stamp for "+name, "", []ledger.Trailer{{"Bagpipe-Agent", who.Agent}})}, nil
	})
	return path, err
}

func askTime(ctx context.Context, url string, data []byte) ([]byte, error) {
	nonce, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 63))
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	of := imprint{pkix.AlgorithmIdentifier{Algorithm: asn1.ObjectIdentifier{2, 16, 840, 1, 101, 3, 4, 2, 1}, Parameters: asn1.NullRawValue}, sum[:]}
	query, err := asn1.Marshal(timeRequest{1, of, nonce, true})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(query))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/timestamp-query")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxTimestamp+1))
	switch {
	case err != nil:
		return nil, err
	case res.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%s answers %s", url, res.Status)
	case len(body) > maxTimestamp:
		return nil, fmt.Errorf("%s answers with more than %d bytes", url, maxTimestamp)
	}
	var reply timeReply
	rest, err := asn1.Unmarshal(body, &reply)
	if err != nil || len(rest) > 0 {
		return nil, errors.Join(errors.New("the answer is no time stamp"), err)
	}
	if reply.Status.Status > 1 || len(reply.Token.FullBytes) == 0 {
		return nil, fmt.Errorf("%s refuses, with status %d", url, reply.Status.Status)
	}
	digest, errDigest := asn1.Marshal(sum[:])
	number, errNumber := asn1.Marshal(nonce)
	if err := errors.Join(errDigest, errNumber); err != nil {
		return nil, err
	}
	if !bytes.Contains(reply.Token.FullBytes, digest) || !bytes.Contains(reply.Token.FullBytes, number) {
		return nil, errors.New("the answer is a time stamp of something else")
	}
	return body, nil
}
