// Package fixity owns the question whether the copies of an item are what the history says:
// what was dropped, the object, and its bag in the store. It checks them, records each check
// in the item's deposits.json, one commit an item, and hands out copies that it has checked.
//
// An item of which a copy is not what it was is held, so that no step goes on with it, and
// the status tells of it until a person releases it. A copy that may be deleted once the
// item is deposited (source, content) may be absent. A store that is not mounted is an error
// of the whole check, and nothing is recorded.
//
// It must not know how steps are done, nor how a check is asked for. It has no state.
package fixity
