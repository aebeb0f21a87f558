package bags

import "context"

const (
	sevenZipMagic = "7z\xbc\xaf\x27\x1c"
	rar4Magic     = "Rar!\x1a\x07\x00"
	rar5Magic     = "Rar!\x1a\x07\x01\x00"
)

type nest struct{}

func (*nest) charge(*sink) {}

func readElsewhere(ctx context.Context, src *source, archive string, s *sink) error { return nil }

func extractNested(ctx context.Context, archive string, root any, o ExtractOptions, x *Extracted) error {
	return nil
}
