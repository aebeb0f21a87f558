package search

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"

	"bagpipe/engine/gitstore"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// version is of the index's form; another is built anew.
const version = "1"

// schema is the index's tables. Longitude, latitude and days are kept outward in the R*Trees,
// which round; item has them exactly.
const schema = `
CREATE TABLE state(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE item(n INTEGER PRIMARY KEY, digest INTEGER NOT NULL, w REAL, s REAL, e REAL, n2 REAL, start INTEGER, until INTEGER);
CREATE VIRTUAL TABLE words USING fts5(label, more, content='', contentless_delete=1, tokenize='ascii');
CREATE VIRTUAL TABLE box USING rtree(id, w, e, s, n);
CREATE VIRTUAL TABLE span USING rtree(id, start, until);
CREATE TABLE term(t INTEGER PRIMARY KEY, facet TEXT NOT NULL, value TEXT NOT NULL, key TEXT NOT NULL, UNIQUE(facet, value));
CREATE TABLE has(t INTEGER NOT NULL, n INTEGER NOT NULL, PRIMARY KEY(t, n)) WITHOUT ROWID;
CREATE INDEX has_n ON has(n, t);
`

// errOther is an index that cannot be used and is built anew.
var errOther = errors.New("the search index is of another version")

// openDB opens the index's file. Where a writer is at work, it is waited for.
func openDB(ctx context.Context, path string, pragmas ...string) (*sql.DB, *sql.Conn, error) {
	q := url.Values{"_pragma": append([]string{"busy_timeout(20000)", "temp_store(2)", "cache_size(-65536)"}, pragmas...)}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: q.Encode()}).String())
	if err != nil {
		return nil, nil, err
	}
	db.SetMaxOpenConns(1)
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	return db, conn, nil
}

// treeOf reads which tree an index follows from.
func treeOf(ctx context.Context, q querier) (tree gitstore.Hash, err error) {
	var is, hash string
	if err := q.QueryRowContext(ctx, "SELECT value FROM state WHERE key='version'").Scan(&is); err != nil {
		return tree, err
	}
	if is != version {
		return tree, errOther
	}
	if err := q.QueryRowContext(ctx, "SELECT value FROM state WHERE key='tree'").Scan(&hash); err != nil {
		return tree, err
	}
	return gitstore.ParseHash(hash)
}

// querier is a connection or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// damaged reports whether an error is of an index that has to be built anew.
func damaged(err error) bool {
	var e *sqlite.Error
	if errors.As(err, &e) {
		switch e.Code() & 0xff {
		case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_FORMAT, sqlite3.SQLITE_SCHEMA, sqlite3.SQLITE_MISMATCH:
			return true
		}
	}
	return errors.Is(err, errOther) || errors.Is(err, sql.ErrNoRows) || errors.Is(err, fs.ErrNotExist)
}

// unwritable reports whether an error says that nothing can be written here.
func unwritable(err error) bool {
	var e *sqlite.Error
	if errors.As(err, &e) {
		switch e.Code() & 0xff {
		case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_BUSY:
			return true
		}
	}
	var pathErr *os.PathError
	return errors.As(err, &pathErr)
}

// makeTables makes the tables of a new index.
func makeTables(ctx context.Context, q querier) error {
	if _, err := q.ExecContext(ctx, schema); err != nil {
		return err
	}
	_, err := q.ExecContext(ctx, "INSERT INTO state VALUES('version', ?)", version)
	return err
}

// setTree says which tree the index follows from.
func setTree(ctx context.Context, q querier, tree gitstore.Hash) error {
	_, err := q.ExecContext(ctx, "INSERT OR REPLACE INTO state VALUES('tree', ?)", tree.String())
	if err != nil {
		return fmt.Errorf("note the tree: %w", err)
	}
	return nil
}
