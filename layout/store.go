package layout

import (
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// Paths of the two files that tie a workspace to its stores.
const (
	WorkspaceFile = "controls/workspace.json" // committed
	StoreFile     = "bagpipe-store.json"      // at the top of a store
)

const (
	workspaceSchema = 1
	storeSchema     = 1
	markLen         = 16
)

// Mark is a workspace's own: 16 random hexadecimal digits, drawn once.
type Mark string

// NewMark draws a mark.
func NewMark(random io.Reader) (Mark, error) {
	b := make([]byte, markLen/2)
	if _, err := io.ReadFull(random, b); err != nil {
		return "", fmt.Errorf("draw a workspace's mark: %w", err)
	}
	return Mark(fmt.Sprintf("%x", b)), nil
}

// Workspace is controls/workspace.json.
type Workspace struct {
	Schema int  `json:"schema"`
	Mark   Mark `json:"mark"`
}

// DecodeWorkspace reads controls/workspace.json; a newer schema is a *SchemaError.
func DecodeWorkspace(data []byte) (Workspace, error) {
	var w Workspace
	if err := json.Unmarshal(data, &w); err != nil {
		return w, fmt.Errorf("read %s: %w", WorkspaceFile, err)
	}
	if w.Schema > workspaceSchema {
		return w, &SchemaError{File: WorkspaceFile, Schema: w.Schema, Known: workspaceSchema}
	}
	if len(w.Mark) != markLen || !isHex(string(w.Mark)) {
		return w, fmt.Errorf("read %s: mark %q: want %d hexadecimal digits", WorkspaceFile, w.Mark, markLen)
	}
	return w, nil
}

// Encode writes w.
func (w Workspace) Encode() ([]byte, error) {
	w.Schema = workspaceSchema
	return EncodeJSON(w)
}

// Store is bagpipe-store.json: the workspaces that deposit in a store.
type Store struct {
	Schema     int                  `json:"schema"`
	Workspaces map[Mark]StoreMember `json:"workspaces"`
}

// StoreMember says since when a workspace deposits in a store.
type StoreMember struct {
	Since time.Time `json:"since,omitzero"`
}

// DecodeStore reads bagpipe-store.json; no bytes are a store of no workspace. A newer
// schema is a *SchemaError. Workspaces is never nil.
func DecodeStore(data []byte) (Store, error) {
	s := Store{Workspaces: map[Mark]StoreMember{}}
	if len(data) == 0 {
		return s, nil
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("read %s: %w", StoreFile, err)
	}
	if s.Workspaces == nil { // null
		s.Workspaces = map[Mark]StoreMember{}
	}
	if s.Schema > storeSchema {
		return s, &SchemaError{File: StoreFile, Schema: s.Schema, Known: storeSchema}
	}
	return s, nil
}

// Encode writes s over old (nil for a new one); fields s does not know survive.
func (s Store) Encode(old []byte) ([]byte, error) {
	s.Schema = storeSchema
	return RewriteJSON(old, s)
}
