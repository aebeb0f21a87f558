package remote

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"bagpipe/engine/remote/wire"
)

// Messages that are refused are counted, of the worker whose key they came with or whose attempt they name; those of
// strangers in the sum alone.
func TestRefusedMessagesAreCounted(t *testing.T) {
	r, l, _ := lentOne(t)
	r.place.Broker, r.rooms.Guests, r.rooms.Report = &noBroker{}, noGuests{}, func(string) {}
	hello := wire.Hello{Head: wire.Now(), Name: "w", Engine: "5c1e9a70", Slots: 1, Robots: []wire.Robot{{Name: "ocr"}}}
	if welcome := (gate{r}).hello("w", hello); welcome.Refused != "" {
		t.Fatal(welcome.Refused)
	}
	for _, data := range []string{"", "{", `{"v":99}`, `{"v":1,"offer":7}`, strings.Repeat(" ", wire.MaxMessage) + "{}"} {
		r.Answer("w", wire.VerbClaim, []byte(data))
	}
	r.Answer("w", "dance", []byte(`{"v":1}`))
	r.Answer("other", wire.VerbHello, []byte(`{"v":1,"name":"w"}`)) // another's name
	long := hello
	long.Robots = []wire.Robot{{Name: "ocr", Version: strings.Repeat("9", mostVersion+1)}}
	if welcome := (gate{r}).hello("w", long); !strings.Contains(welcome.Refused, "a version of 101 bytes of robot ocr") {
		t.Errorf("refused: %q", welcome.Refused)
	}
	late := httptest.NewRequest(http.MethodGet, "/"+l.held.Path()+"/call", nil)
	late.Header.Set("Authorization", "Bearer forged")
	r.Handler().ServeHTTP(httptest.NewRecorder(), late)
	r.Handler().ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/attempts/x/y/z/1/call", nil)) // no attempt
	if (gate{r}).hello("w", hello).Refused != "" || r.beat("w", wire.Beat{Head: wire.Now(), Engine: "5c1e9a70", State: StateReady}).Unknown {
		t.Error("the worker is not taken any more")
	}
	if s := r.status(); s.Refused != 10 || s.Workers[0].Refused != 8 {
		t.Errorf("%d were refused, %d of the worker's; want 10 and 8", s.Refused, s.Workers[0].Refused)
	}
}
