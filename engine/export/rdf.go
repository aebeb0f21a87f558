package export

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"bagpipe/engine/state"
	"bagpipe/layout"
)

const (
	planVocabulary = "http://stanbol.apache.org/ontology/enhancer/executionplan#"
	metaVocabulary = "http://stanbol.apache.org/ontology/enhancer/executionmetadata#"
	xsdVocabulary  = "http://www.w3.org/2001/XMLSchema#"
)

// node is a subject with its statements, in their order.
type node struct {
	iri, kind string // kind is prefixed: em:ChainExecution
	says      []statement
}

// statement is a predicate with an object: an IRI, or a literal of a type of XML Schema.
type statement struct{ predicate, iri, literal, xsd string }

func (n *node) link(predicate, iri string) {
	n.says = append(n.says, statement{predicate: predicate, iri: iri})
}

func (n *node) text(predicate, text, xsd string) {
	if text != "" {
		n.says = append(n.says, statement{predicate: predicate, literal: strings.ToValidUTF8(text, "\ufffd"), xsd: xsd})
	}
}

// statuses are the ontology's; StatusSheduled is its spelling.
var statuses = map[state.Status]string{state.Waiting: "StatusSheduled", state.Deferred: "StatusSheduled", state.InProgress: "StatusInProgress",
	state.Scheduled: "StatusSheduled", state.Completed: "StatusCompleted", state.Skipped: "StatusSkipped", state.Failed: "StatusFailed"}

func planIRI(digest string) string {
	return "bagpipe:plan/" + strings.TrimPrefix(digest, "sha256:")
}

// nodes are those of an item; plans that told has are left out, and added to it.
func (r *record) nodes(told map[string]bool) (all []*node) {
	for _, run := range slices.Sorted(maps.Keys(r.Execution.Workflows)) {
		w := r.Execution.Workflows[run]
		plan := r.plans[w.Digest]
		if !told[w.Digest] {
			told[w.Digest] = true
			all = append(all, planNodes(plan, w.Digest)...)
		}
		n := &node{iri: r.id() + "/" + run, kind: "em:ChainExecution"}
		n.link("em:enhances", r.id())
		n.link("em:executionPlan", planIRI(w.Digest))
		n.text("em:isDefaultChain", fmt.Sprint(w.Name == r.isDefault), "boolean")
		n.status(w.Status)
		n.text("em:started", stamp(w.Started), "dateTime")
		n.text("em:completed", stamp(w.Ended), "dateTime")
		all = append(all, n)
		for i := range plan.Steps {
			all = append(all, r.stepNode(run, w, &plan.Steps[i]))
		}
	}
	return all
}

func (n *node) status(s state.Status) {
	if name := statuses[s]; name != "" {
		n.link("em:status", metaVocabulary+name)
	}
}

func (r *record) stepNode(run string, w *state.Workflow, step *state.Step) *node {
	n := &node{iri: r.id() + "/" + run + "/" + step.Name, kind: "em:EngineExecution"}
	n.link("em:executionPart", r.id()+"/"+run)
	n.link("em:executionNode", planIRI(w.Digest)+"/"+step.Name)
	s := w.Steps[layout.Name(step.Name)]
	if s == nil {
		n.status(state.Waiting)
		return n
	}
	n.status(s.Status)
	if _, a, ok := s.Current(); ok {
		n.text("em:started", stamp(a.Started), "dateTime")
		n.text("em:completed", stamp(a.Ended), "dateTime")
		n.text("em:statusMessage", a.Message, "")
	}
	return n
}

func planNodes(plan *state.Definition, digest string) (all []*node) {
	iri := planIRI(digest)
	p := &node{iri: iri, kind: "ep:ExecutionPlan"}
	p.text("ep:chain", plan.Name, "")
	for i := range plan.Steps {
		p.link("ep:hasExecutionNode", iri+"/"+plan.Steps[i].Name)
	}
	all = append(all, p)
	for i := range plan.Steps {
		s := &plan.Steps[i]
		n := &node{iri: iri + "/" + s.Name, kind: "ep:ExecutionNode"}
		n.text("ep:engine", engineOf(s), "")
		for _, before := range plan.Prerequisites(i) {
			n.link("ep:dependsOn", iri+"/"+plan.Steps[before].Name)
		}
		n.text("ep:optional", fmt.Sprint(s.Optional), "boolean")
		all = append(all, n)
	}
	return all
}

// engineOf names who does a step.
func engineOf(s *state.Step) string {
	switch {
	case s.Robot != "":
		return s.Robot
	case len(s.Command) > 0:
		return s.Command[0]
	case s.Starts != "":
		return "start " + s.Starts
	case s.Manual || s.OnRequest:
		return "manual"
	}
	return s.Name
}

// turtle is RDF 1.1 Turtle.
type turtle struct {
	out  *bufio.Writer
	told map[string]bool
}

func (t *turtle) begin() {
	if t.told == nil {
		t.told = map[string]bool{}
		fmt.Fprintf(t.out, "@prefix ep: <%s> .\n@prefix em: <%s> .\n@prefix xsd: <%s> .\n", planVocabulary, metaVocabulary, xsdVocabulary)
	}
}

func (t *turtle) item(r *record) error {
	t.begin()
	for _, n := range r.nodes(t.told) {
		fmt.Fprintf(t.out, "\n<%s> a %s", n.iri, n.kind)
		for _, s := range n.says {
			fmt.Fprintf(t.out, " ;\n    %s %s", s.predicate, s.turtle())
		}
		fmt.Fprint(t.out, " .\n")
	}
	return nil // a writer's error stays until it is flushed
}

func (t *turtle) end() error {
	t.begin()
	return nil
}

func (s statement) turtle() string {
	switch {
	case s.iri != "":
		return "<" + s.iri + ">"
	case s.xsd == "":
		return quoted(s.literal)
	}
	return quoted(s.literal) + "^^xsd:" + s.xsd
}

// quoted is a string literal (Turtle, section 6.4).
func quoted(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range text {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c < ' ' || c == 0x7f || c == 0xfffe || c == 0xffff:
			fmt.Fprintf(&b, `\u%04X`, c)
		case c == utf8.RuneError:
			b.WriteRune(utf8.RuneError)
		default:
			b.WriteRune(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// jsonld is JSON-LD 1.1, one node an entry of @graph.
type jsonld struct {
	out  *bufio.Writer
	told map[string]bool
	n    int
}

func (j *jsonld) begin() error {
	if j.told != nil {
		return nil
	}
	j.told = map[string]bool{}
	context, err := json.Marshal(map[string]string{"ep": planVocabulary, "em": metaVocabulary, "xsd": xsdVocabulary})
	fmt.Fprintf(j.out, "{\"@context\": %s, \"@graph\": [", context)
	return err
}

func (j *jsonld) item(r *record) error {
	if err := j.begin(); err != nil {
		return err
	}
	for _, n := range r.nodes(j.told) {
		entry := map[string]any{"@id": n.iri, "@type": n.kind}
		for _, s := range n.says {
			var object any = s.literal
			switch {
			case s.iri != "":
				object = map[string]string{"@id": s.iri}
			case s.xsd != "":
				object = map[string]string{"@type": "xsd:" + s.xsd, "@value": s.literal}
			}
			list, _ := entry[s.predicate].([]any)
			entry[s.predicate] = append(list, object)
		}
		data, err := json.Marshal(entry)
		if err != nil {
			return err
		}
		if j.n++; j.n > 1 {
			fmt.Fprint(j.out, ",")
		}
		fmt.Fprintf(j.out, "\n%s", data)
	}
	return nil
}

func (j *jsonld) end() error {
	if err := j.begin(); err != nil {
		return err
	}
	fmt.Fprint(j.out, "\n]}\n")
	return nil
}
