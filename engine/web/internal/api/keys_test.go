package api

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"bagpipe/engine/web/internal/desk"
)

// An answer is given again for 24 hours. Then its key is free, for the same call or for another, and is
// not kept.
func TestKeysEndAfterADay(t *testing.T) {
	now := time.Date(2026, 11, 26, 3, 0, 0, 0, time.UTC)
	a := &API{d: &desk.Desk{Place: desk.Place{Now: func() time.Time { return now }}}}
	a.keys.loaded, a.keys.calls = true, map[string]*keyedCall{} // the history has none
	done := 0
	answers := a.keyed(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		done++
		fmt.Fprint(w, done)
	}))
	call := func(key, body string) string {
		r := httptest.NewRequest("POST", "/api/v1/acts", strings.NewReader(body))
		r.Header.Set("Idempotency-Key", key)
		w := httptest.NewRecorder()
		answers.ServeHTTP(w, r)
		return fmt.Sprint(w.Code, " ", w.Body.String(), w.Header().Get("Idempotency-Replayed"))
	}
	for _, c := range []struct {
		after           time.Duration
		key, body, want string
	}{
		{0, "one", "a", "200 1"},
		{0, "one", "a", "200 1true"},
		{24*time.Hour - 1, "one", "a", "200 1true"},
		{0, "two", "a", "200 2"},
		{1, "one", "b", "200 3"},
		{0, "one", "b", "200 3true"},
		{0, "two", "a", "200 2true"},
		{24*time.Hour - 1, "three", "a", "200 4"},
	} {
		now = now.Add(c.after)
		if got := call(c.key, c.body); got != c.want {
			t.Errorf("%s %s at %v: %s, want %s", c.key, c.body, now, got, c.want)
		}
	}
	if got := call("one", "a"); !strings.HasPrefix(got, "422 ") {
		t.Errorf("another call within the day: %s", got)
	}
	if len(a.keys.calls) != 2 { // one and three; two is over
		t.Errorf("%d calls are kept", len(a.keys.calls))
	}
}
