package queue

import (
	"slices"
	"testing"

	"bagpipe/layout"
)

// Children that were made in the same instant are listed by their names, as people
// count.
func TestChildrenByName(t *testing.T) {
	c := newCrowd(t, Lanes{Names: []layout.Name{"normal"}})
	parent := c.drop("maps", "", "normal")
	want := []string{"page-1", "page-2", "page-09", "page-10", "page-10a", "page-100", "q"}
	for _, name := range []string{"page-10a", "page-100", "q", "page-2", "page-10", "page-1", "page-09"} {
		it := c.items[c.drop("maps", "", "normal")]
		it.Created, it.Label = t0.Add(1e9), name
		it.Parent = &layout.Parent{Item: parent, Workflow: workflow, Step: "a", Name: name, Generation: 1}
		c.x.Put(it)
	}
	var listed, children []string
	for it := range c.x.Items() {
		if it.Parent != nil {
			listed = append(listed, it.Parent.Name)
		}
	}
	for _, it := range c.x.Children(parent) {
		children = append(children, it.Parent.Name)
	}
	if !slices.Equal(listed, want) || !slices.Equal(children, want) {
		t.Errorf("listed %v, children %v", listed, children)
	}
}
