// Package access owns who may use the pages and the REST calls: users with passwords, tokens
// of programs, and what each role may do.
//
// It must not know pages, requests or items. Users and tokens are not the history's: they
// stand in access/ of the workspace, files of mode 0600 that only this package reads and
// writes:
//
//	access/users.json   {"schema": 1, "users":  {"NAME": {"name", "email", "role", "collections": [], "password": "$argon2id$…"}}}
//	access/tokens.json  {"schema": 1, "tokens": {"ID":   {"name", "role", "collections": [], "expires", "digest": "sha256:HEX"}}}
//
// A password stands there as its argon2id hash, a token as its digest alone; without
// collections, an account reaches all. Each change replaces the file durably, under a lock of
// the folder: a crash leaves the old file or the new one.
//
// A Book may be used by several goroutines; its lock guards what it read last, and a
// semaphore lets two passwords be hashed at once.
package access
