package main

import (
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/tidwall/gjson"
)

// A folder that is dragged onto the inbox's page becomes one drop, with all that is in it.
func TestServeTakesAFolderThatIsDragged(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.write("up/box/one.txt", "one")
	b.write("up/box/below/two.txt", "two")
	s := b.serve()
	br := s.browser()
	br.enter()
	var at [2]float64
	br.do(chromedp.Navigate(s.base+"/inbox"), chromedp.WaitReady("form.drop"),
		chromedp.Evaluate(`(() => { const r = document.querySelector("form.drop").getBoundingClientRect(); return [r.x + 9, r.y + 9] })()`, &at))
	dragged := &input.DragData{Items: []*input.DragDataItem{}, Files: []string{filepath.Join(b.top, "up/box")}, DragOperationsMask: 1} // a copy
	for _, step := range []input.DispatchDragEventType{input.DragEnter, input.DragOver, input.Drop} {
		br.do(input.DispatchDragEvent(step, at[0], at[1], dragged))
	}
	b.await("the item", func() bool {
		return gjson.Get(b.ok("items", "--json"), "0.label").String() == "box"
	})
	b.await("its files", func() bool {
		return gjson.Get(b.ok("show", "box", "--json"), "files.#.path").String() == `["below/two.txt","one.txt"]`
	})
}
