package bags

import (
	"context"
	"os"
)

type nest struct{}

func (*nest) charge(*sink) {}

func extractNested(ctx context.Context, archive string, root *os.Root, o ExtractOptions, x *Extracted) error {
	return nil
}
