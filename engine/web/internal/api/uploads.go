package api

import (
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// describeUploads puts the calls of tus into the document; another handler answers them.
func (a *API) describeUploads() {
	text := func(in, name string, required bool) *huma.Param {
		return &huma.Param{Name: name, In: in, Required: required, Schema: &huma.Schema{Type: "string"}}
	}
	for _, c := range []struct {
		method, path, summary, status string
		params                        []*huma.Param
	}{
		{http.MethodPost, "uploads", "Announce a file (tus 1.0.0)", "201", []*huma.Param{text("header", "Upload-Length", true), text("header", "Upload-Metadata", true)}},
		{http.MethodHead, "uploads/{id}", "How much of a file is there", "200", nil},
		{http.MethodPatch, "uploads/{id}", "Append bytes to a file", "204", []*huma.Param{text("header", "Upload-Offset", true), text("header", "Upload-Checksum", false)}},
		{http.MethodDelete, "uploads/{id}", "Give a file up", "204", nil},
	} {
		op := a.operation(c.method, c.path, c.summary)
		op.Parameters = c.params
		if strings.Contains(c.path, "{") {
			op.Parameters = append(op.Parameters, text("path", "id", true))
		}
		plain := map[string]*huma.MediaType{"text/plain": {Schema: &huma.Schema{Type: "string"}}}
		op.Responses = map[string]*huma.Response{c.status: {Description: "OK"}, "401": op.Responses["401"], "default": {Description: "Refused", Content: plain}}
		if c.method == http.MethodPatch {
			op.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/offset+octet-stream": {Schema: &huma.Schema{Type: "string"}}}}
		}
		a.huma.OpenAPI().AddOperation(&op)
	}
}
