package steps

import (
	"context"
	"encoding/hex"
	"fmt"

	"bagpipe/bags/files"
	"bagpipe/layout"
)

// inventory describes every file of the object: size, SHA-256, SHA-512 and MIME
// type, each file read once.
func inventory(ctx context.Context, c *Call) (Result, error) {
	tree, err := c.tree(ctx) // a renamed file gets the name that it has
	if err != nil {
		return Result{}, failure(err)
	}
	if err := tree.CheckRegular(); err != nil {
		return Result{}, failure(err)
	}
	if len(tree.Files) == 0 {
		return Result{}, ContentFailure("the object has no files")
	}
	v := layout.Inventory{Item: c.Item, Files: make(map[string]layout.InventoryFile, len(tree.Files))}
	o := files.HashOptions{Progress: c.progress()}
	err = files.Hash(ctx, tree, []files.Algorithm{files.SHA256, files.SHA512}, o, func(h files.Hashed) error {
		v.Files[layout.EncodePath(tree.Files[h.Index].Path)] = layout.InventoryFile{
			Size:   h.Size,
			SHA256: hex.EncodeToString(h.Sums.Of(files.SHA256)),
			SHA512: hex.EncodeToString(h.Sums.Of(files.SHA512)),
			Type:   files.Types(h.Head)[0],
		}
		return nil
	})
	if err != nil {
		return Result{}, failure(err)
	}
	return Result{
		Message:   fmt.Sprintf("%s, %s", layout.Count(len(v.Files), "file"), layout.Count(v.Bytes(), "byte")),
		Inventory: &v,
	}, nil
}
