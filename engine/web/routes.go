package web

import (
	"strings"

	"bagpipe/engine/web/internal/api"
	"bagpipe/engine/web/internal/pages"
	"bagpipe/engine/web/internal/workdo"
)

// Calls are the patterns of the calls below /api/v1, but for those of uploads.
func Calls() []string { return api.Patterns() }

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
