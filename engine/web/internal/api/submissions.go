package api

import (
	"context"
	"net/http"
	"time"

	"bagpipe/engine/remote/wire"
	"bagpipe/engine/web/access"
	"bagpipe/engine/web/internal/desk"

	"github.com/danielgtaylor/huma/v2"
)

// KeyPath names a submission by the key that its program drew for it.
type KeyPath struct {
	Key string `path:"key" doc:"1 to 128 letters, digits, dots, colons, hyphens or underscores"`
}

type submissionIn struct {
	KeyPath
	Body wire.Submission
}

const submissionPath = "submissions/{key}"

// registerSubmissions registers what programs call that submit items.
func registerSubmissions(a *API) {
	get(a, submissionPath, "How a submission stands: the item it became, or what of it is here", func(ctx context.Context, in *KeyPath) (wire.Submitted, error) {
		return a.sent.Find(ctx, in.Key)
	})
	a.mux.HandleFunc("PUT "+Root+submissionPath+"/files/{path}", func(w http.ResponseWriter, r *http.Request) { putSubmitted(a, w, r) })
	describePut(a, submissionPath+"/files/{path}", "Send a file of a submission", "key", "path")
	op := a.operation(http.MethodPost, submissionPath+"/end", "Make an item of a submission, once; or say what is to be sent again")
	op.MaxBodyBytes = wire.MaxDocument
	op.BodyReadTimeout = partTime
	huma.Register(a.huma, op, func(ctx context.Context, in *submissionIn) (*answer[wire.Submitted], error) {
		out, err := a.sent.End(ctx, in.Key, in.Body)
		if err != nil {
			return nil, problemOf(a.d, err)
		}
		return &answer[wire.Submitted]{out}, nil
	})
}

// putSubmitted takes a part of a file.
func putSubmitted(a *API, w http.ResponseWriter, r *http.Request) {
	_, err := a.d.Acts(r.Context(), access.Operator)
	var offset int64
	if err == nil {
		offset, err = offsetOf(r)
	}
	var digest []byte
	if err == nil {
		digest, err = wire.ContentDigest(r.Header.Get("Content-Digest"))
	}
	if err == nil {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(partTime)) // a writer of tests has none
		desk.Patient(w)
		err = a.sent.Put(r.Context(), r.PathValue("key"), r.PathValue("path"), offset, digest, http.MaxBytesReader(w, r.Body, mostPart))
	}
	if err != nil {
		write(w, problemOf(a.d, err))
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
