// Package garbage sets when memory is collected: late, as most commands end before it is needed.
//
// It owns the pace of the collector. It must not know what allocates.
package garbage
