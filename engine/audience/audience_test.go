package audience

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func book(t *testing.T, files ...string) *Book {
	t.Helper()
	b := New()
	for i := 0; i < len(files); i += 2 {
		if err := b.Add(files[i], []byte("schema: 1\n"+files[i+1])); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func TestRecipients(t *testing.T) {
	b := book(t,
		"feeds/people/ada.yaml", "addresses: [Ada@example.org]\n",
		"feeds/people/bob.yaml", "addresses: [bob@example.org]\nfollows: [ada@example.org]\noptOut: [{app: intake}, {collection: maps, type: bagpipe.accession.failed}]\n",
		"feeds/people/cem.yaml", "follows: [ada]\n",
		"feeds/people/dot.yaml", "private: true\n",
		"feeds/collections/maps.yaml", "members: [bob, eve@example.org]\noptOut: [{poster: cem}]\n")
	for _, c := range []struct {
		post Post
		want string
	}{
		{Post{"ada", "maps", "accession", "bagpipe.accession.registered"}, "person/ada person/bob person/eve@example.org collection/maps"}, // cem does not see it
		{Post{"ada", "maps", "accession", "bagpipe.accession.failed"}, "person/ada person/eve@example.org collection/maps"},
		{Post{"ada", "books", "accession", "x.y"}, "person/ada person/bob person/cem collection/books"},
		{Post{"ada", "books", "intake", "x.y"}, "person/ada person/cem collection/books"},
		{Post{"cem", "maps", "accession", "x.y"}, "person/bob person/cem person/eve@example.org"},
		{Post{"dot", "maps", "accession", "x.y"}, ""},
		{Post{"", "books", "accession", "x.y"}, "collection/books"},
		{Post{"nobody@example.org", "", "", "x.y"}, "person/nobody@example.org"},
	} {
		if diff := cmp.Diff(c.want, strings.Join(b.Recipients(c.post), " ")); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", c.post, diff)
		}
	}
	if got := b.Named("ADA@example.org"); got != "ada" {
		t.Errorf("an address is compared with its case: %s", got)
	}
}

func TestOfTwoPeopleWithOneAddressTheFirstHasIt(t *testing.T) {
	for _, order := range [][]string{{"ada", "bob"}, {"bob", "ada"}} {
		b := book(t, "feeds/people/"+order[0]+".yaml", "addresses: [desk@example.org]", "feeds/people/"+order[1]+".yaml", "addresses: [desk@example.org]")
		if got := b.Named("desk@example.org"); got != "ada" {
			t.Errorf("read %v: %s", order, got)
		}
	}
}

func TestActivities(t *testing.T) {
	b := New()
	for _, c := range []struct {
		to     string
		person bool
		want   bool
	}{{"registered", false, true}, {"failed", false, true}, {"completed", false, false}, {"completed", true, true}, {"in-progress", true, false}} {
		if _, ok := b.Fits("accession", "ocr", c.to, c.person); ok != c.want {
			t.Errorf("%s by a person %t: an activity is %t", c.to, c.person, ok)
		}
	}
	b = book(t, "feeds/posts.yaml", "activities: [{to: [completed], step: ocr, as: read}]")
	if word, ok := b.Fits("accession", "ocr", "completed", false); !ok || word != "read" {
		t.Errorf("%s, %t", word, ok)
	}
}

func TestWhatIsRefused(t *testing.T) {
	for file, data := range map[string]string{
		"feeds/posts.yaml":            "schema: 1\nactivities: [{by: cats}]",
		"feeds/other.yaml":            "schema: 1\n",
		"feeds/people/ada.yaml":       "schema: 2\n",
		"feeds/people/bob.yaml":       "schema: 1\noptOut: [{}]\n",
		"feeds/collections/maps.yaml": "schema: 1\nmember: [ada]\n",
	} {
		if err := Check(file, []byte(data)); err == nil || !strings.HasPrefix(err.Error(), file) {
			t.Errorf("%s: %v", file, err)
		}
	}
}
