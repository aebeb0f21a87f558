package bags

import (
	"context"
	"fmt"
)

// Recover finishes a change of the folder that was interrupted, and says how: a
// bag that was being made or changed is completed when everything new had been
// written, and otherwise the folder is as it was.
func Recover(ctx context.Context, dir string) (Outcome, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	r, was, err := openRewrite(dir, true, nil)
	if err != nil {
		return "", fmt.Errorf("finish what was interrupted in %s: %w", dir, err)
	}
	return was, r.unlock()
}
