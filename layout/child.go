package layout

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
)

// Parent says of which item, and which of its steps, an item is a child.
type Parent struct {
	Item       ItemID `json:"item"`
	Workflow   string `json:"workflow"` // numbered: compound.1
	Step       Name   `json:"step"`
	Name       string `json:"name"` // among the step's children; percent-encoded (EncodePath)
	Generation int    `json:"generation"`
}

// check wants names that can be looked up and shown; a push may hold anything.
func (p *Parent) check() error {
	if p == nil {
		return nil
	}
	_, item := ParseItemID(string(p.Item))
	_, run := ParseName(p.Workflow[:max(0, strings.LastIndexByte(p.Workflow, '.'))]) // it is numbered
	_, step := ParseName(string(p.Step))
	return errors.Join(item, run, step)
}

// ChildID is the identifier of a step's child of that name (as it is, any bytes).
// It is derived and not drawn, so that a step that runs again after half a run finds
// the children it had made. 56 bits of SHA-256 are as many as a drawn identifier has.
func ChildID(parent ItemID, workflow string, step Name, name string) ItemID {
	sum := sha256.Sum256([]byte(strings.Join([]string{"child", string(parent), workflow, string(step), name}, "\x00")))
	body := hex.EncodeToString(sum[:7])
	return ItemID(body + string(checkDigit(body)))
}
