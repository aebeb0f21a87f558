package odb

import (
	"container/list"
	"sync"
)

// cache keeps recently used objects up to a number of bytes; the least recently
// used go first. Its lock guards both the map and the list.
type cache[K comparable] struct {
	mu    sync.Mutex
	limit int
	size  int
	items map[K]*list.Element
	order *list.List // front: used last
}

type cached[K comparable] struct {
	key  K
	t    Type
	data []byte
}

const cacheOverhead = 160 // a map slot, a list element and the struct

func newCache[K comparable](limit int) *cache[K] {
	return &cache[K]{limit: limit, items: map[K]*list.Element{}, order: list.New()}
}

func (c *cache[K]) find(key K) (Type, []byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	el, ok := c.items[key]
	if !ok {
		return 0, nil, false
	}
	c.order.MoveToFront(el)
	it := el.Value.(*cached[K])
	return it.t, it.data, true
}

func (c *cache[K]) put(key K, t Type, data []byte) {
	cost := len(data) + cacheOverhead
	if cost > c.limit/8 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.items[key]; ok {
		return
	}
	c.items[key] = c.order.PushFront(&cached[K]{key, t, data})
	for c.size += cost; c.size > c.limit; {
		last := c.order.Back()
		it := c.order.Remove(last).(*cached[K])
		delete(c.items, it.key)
		c.size -= len(it.data) + cacheOverhead
	}
}
