package recognise

import (
	"fmt"

	where "bagpipe/engine/condition"
	"bagpipe/layout"
)

// checkDelivery reads the conditions of delivery:.
func (c *checker) checkDelivery() (err error) {
	f := c.file
	if len(f.Delivery) > maxRules {
		return f.Errorf("$.delivery", "%d rules; at most %d in a file", len(f.Delivery), maxRules)
	}
	for i := range f.Delivery {
		d, at := &f.Delivery[i], fmt.Sprintf("$.delivery[%d]", i)
		if _, err := layout.ParseName(d.To); err != nil {
			return f.Errorf(at+".to", "%v", err)
		}
		if d.For != "" {
			if d.Which, err = where.Parse(d.For); err != nil {
				return f.Errorf(at+".for", "%v", err)
			}
		}
		if d.Approve == "" || d.Approve == ApproveNever || d.Approve == ApproveAlways {
			continue
		}
		if d.Asked, err = where.Parse(d.Approve); err != nil {
			return f.Errorf(at+".approve", "%v", err)
		}
	}
	return nil
}
