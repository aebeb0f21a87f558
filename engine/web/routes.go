package web

import (
	"strings"

	"bagpipe/engine/web/internal/pages"
	"bagpipe/engine/web/internal/workdo"
)

// Routes are the patterns of every page, and of the calls of WorkDo with what begins them: METHOD PATH, as
// net/http has them. The calls below /api/v1 are in their OpenAPI document.
func Routes() []string {
	routes := pages.Routes()
	for _, pattern := range workdo.Routes() {
		method, path, _ := strings.Cut(pattern, " ")
		routes = append(routes, method+" /"+robotsRoot+path)
	}
	return routes
}
