package search

import (
	"context"
	"errors"

	"bagpipe/engine/query"
)

// IsWide reports whether the index names so many items that facets are counted by a look at every record.
func (s *Searches) IsWide(ctx context.Context, q query.Query) bool {
	_, err := s.countFound(ctx, q)
	return errors.Is(err, errWide)
}
