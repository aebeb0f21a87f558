package ledger

import (
	"fmt"

	"bagpipe/engine/gitstore"
	"bagpipe/layout"
)

// ReadDeposits reads an item's deposits.json; without the file it has no copies.
func ReadDeposits(v gitstore.Reader, id layout.ItemID) (layout.Deposits, error) {
	data, err := ReadOptional(v, layout.ItemDir(id)+"/"+layout.DepositsJSON)
	if err != nil || data == nil {
		return layout.Deposits{Item: id}, err
	}
	d, err := layout.DecodeDeposits(data)
	if err != nil {
		return d, fmt.Errorf("item %s: %w", id.Short(), err)
	}
	d.Item = id
	return d, nil
}

// ReadQuality reads an item's quality.json; nil without the file.
func ReadQuality(v gitstore.Reader, id layout.ItemID) (*layout.Quality, error) {
	data, err := ReadOptional(v, layout.ItemDir(id)+"/"+layout.QualityJSON)
	if err != nil || data == nil {
		return nil, err
	}
	q, err := layout.DecodeQuality(data)
	if err != nil {
		return nil, fmt.Errorf("item %s: %w", id.Short(), err)
	}
	return &q, nil
}
