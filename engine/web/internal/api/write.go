package api

import (
	"encoding/json"
	"net/http"
)

// write answers with a problem, outside huma.
func write(w http.ResponseWriter, p *Problem) {
	data, err := json.Marshal(p)
	if err != nil {
		http.Error(w, p.Detail, p.Status)
		return
	}
	w.Header().Set("Content-Type", p.ContentType(""))
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(data, '\n')) // who asked is gone
}
