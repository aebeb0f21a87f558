package search

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"net/url"
	"os"
	"strconv"
	"strings"

	"bagpipe/engine/gitstore"
	"bagpipe/layout"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// version is of the index's form; another is built anew.
const version = "10"

// schema is the index's tables. Longitude, latitude and days are kept outward in the R*Trees,
// which round; the lists of edges, and reach, have them as they are.
// Keys of lists have an index of their own: where the rows are one, SQLite reads the whole of each that it compares.
const schema = `
CREATE TABLE state(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE item(id INTEGER PRIMARY KEY, rows BLOB NOT NULL);
CREATE TABLE reach(id INTEGER PRIMARY KEY, rows BLOB NOT NULL);
CREATE TABLE common(id INTEGER PRIMARY KEY, rows BLOB NOT NULL);
CREATE TABLE replaced(part INTEGER PRIMARY KEY, docs BLOB NOT NULL);
CREATE TABLE part(part INTEGER PRIMARY KEY, next INTEGER NOT NULL, live BLOB NOT NULL);
CREATE TABLE list(part INTEGER NOT NULL, key BLOB NOT NULL, docs BLOB NOT NULL, PRIMARY KEY(part, key));
CREATE TABLE tag(value TEXT PRIMARY KEY, key TEXT NOT NULL, bare TEXT) WITHOUT ROWID;
CREATE INDEX tag_key ON tag(key);
CREATE INDEX tag_bare ON tag(bare);
CREATE VIRTUAL TABLE words USING fts5(label, more, content='', tokenize='ascii');
CREATE VIRTUAL TABLE box USING rtree(id, w, e, s, n);
CREATE VIRTUAL TABLE span USING rtree(id, start, until);
`

// Of a key of a list the first byte says what it is of.
const (
	keyWord   = "w" // a word, wherever it stands
	keyLabel  = "l" // a word of the label
	keyTerm   = "t" // what items have in common: the facet, a zero, the value
	keyAlike  = "a" // the name and size
	keyAfter  = "u" // follows all of keyTerm
	keyValue  = "v" // a byte of the sum of a value, for conditions: the rest of the sum, and the place, five bytes each
	keyStand  = "o" // a word: where in texts it stands, in pieces (stands.go)
	keyLong   = "f" // the documents whose text FTS5 has
	keyEdge   = "e" // an edge, and the value of the list's first documents (edges.go)
	keyAcross = "x" // the documents that lie across 180°
)

// textSum is the sum of a text at a path of the manifest; numbers in the path, which lead into lists, do not count.
func textSum(path, text string) uint32 { return sumAt(path, "="+text) }

// numberSum is the sum of a number at a path.
func numberSum(path string, n float64) uint32 {
	return sumAt(path, "#"+strconv.FormatFloat(n+0, 'g', -1, 64)) // + 0: -0 is 0
}

func sumAt(path, value string) uint32 {
	b := make([]byte, 0, len(path)+1+len(value))
	for name := range strings.SplitSeq(path, ".") {
		if strings.Trim(name, "0123456789") != "" || name == "" {
			b = append(append(b, name...), '.')
		}
	}
	return crc32.Checksum(append(append(b, 0), value...), castagnoli)
}

func (t term) key() string { return keyTerm + t.facet + "\x00" + t.value }

// termOf reads what key wrote.
func termOf(key string) term {
	facet, value, _ := strings.Cut(key[len(keyTerm):], "\x00")
	return term{facet, value}
}

// idBits is how many bits an identifier has.
const idBits = 4 * (layout.ItemIDLen - 1)

// maxBits is how many of them may name a part: twice a document's number still is a row's.
const maxBits = 40

// errOther is an index that cannot be used and is built anew.
var errOther = errors.New("the search index is of another version")

// errYoung is an index whose young part has no room: what changed is taken into the parts.
var errYoung = errors.New("the young part of the search index is full")

// errFull is an index of which a part has no room for another document.
var errFull = errors.New("a part of the search index is full")

// largeCache is for who writes: where changed pages found no room, they would go to the file before the end, and readers wait from then on.
const largeCache = "cache_size(-65536)"

// cacheKiB is the cache of a connection.
const cacheKiB = 1024

// openDB opens the index's file. Where a writer is at work, it is waited for. The cache is small: most pages are read once, and
// memory that is used again costs less than new memory for each.
func openDB(ctx context.Context, path string, pragmas ...string) (*sql.DB, *sql.Conn, error) {
	files, err := checkedFiles()
	if err != nil {
		return nil, nil, err
	}
	q := url.Values{"vfs": {files.name}, "_pragma": append([]string{"busy_timeout(20000)", "temp_store(2)", fmt.Sprintf("cache_size(-%d)", cacheKiB)}, pragmas...)}
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
	var is string
	if err := q.QueryRowContext(ctx, "SELECT value FROM state WHERE key='version'").Scan(&is); err != nil {
		return tree, err
	}
	if is != version {
		return tree, errOther
	}
	return treeNoted(ctx, q, stateTree)
}

// What of an index's state is a tree.
const (
	stateTree  = "tree"  // that the index follows from
	stateParts = "parts" // at which the young part began: it, and parts it was taken into, have what changed since
)

// treeNoted reads a tree of the state.
func treeNoted(ctx context.Context, q querier, key string) (tree gitstore.Hash, err error) {
	var hash string
	if err := q.QueryRowContext(ctx, "SELECT value FROM state WHERE key=?", key).Scan(&hash); err != nil {
		return tree, err
	}
	tree, err = gitstore.ParseHash(hash)
	return tree, unlike(err)
}

// youngOf reads which part is the young one.
func youngOf(ctx context.Context, q querier, bits int) (part int64, err error) {
	err = q.QueryRowContext(ctx, "SELECT max(part) FROM part").Scan(&part)
	if err = unlike(err); err == nil && part>>bits == 0 {
		err = errOther
	}
	return part, err
}

// itemsOfPart is how many items of a part are aimed at: with fewer a search looks into many parts,
// with more each answers slowly.
const itemsOfPart = 8192

func bitsFor(items int) (bits int) {
	for items>>bits > itemsOfPart {
		bits++
	}
	return bits
}

// mostYoung is how many documents the young part has had when it is taken into the others: each search looks at them, and
// that takes a second for some thousands.
func mostYoung(ctx context.Context, q querier, young int64) (int, error) {
	var all int
	err := q.QueryRowContext(ctx, "SELECT coalesce(sum(next), 0) FROM part WHERE part<?", young).Scan(&all)
	return min(2*itemsOfPart, all/5), unlike(err)
}

// isCrowded reports whether the young part is to be taken into the others.
func isCrowded(ctx context.Context, q querier, young int64) (bool, error) {
	most, err := mostYoung(ctx, q, young)
	if err != nil {
		return false, err
	}
	var next int
	err = q.QueryRowContext(ctx, "SELECT next FROM part WHERE part=?", young).Scan(&next)
	return next > 0 && next >= most, unlike(err)
}

// bitsOf reads how many bits of an identifier name its part.
func bitsOf(ctx context.Context, q querier) (bits int, err error) {
	err = q.QueryRowContext(ctx, "SELECT value FROM state WHERE key='bits'").Scan(&bits)
	if err = unlike(err); err == nil && (bits < 0 || bits > maxBits+2) {
		err = errOther
	}
	return bits, err
}

// querier is a connection or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// unlike makes an error of what was read, and is not as it was written, one of an index that has to be built anew:
// SQLite itself does not see all damage.
func unlike(err error) error {
	var e *sqlite.Error
	if err == nil || errors.As(err, &e) || errors.Is(err, sql.ErrNoRows) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("%w: %w", errOther, err)
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
	return errors.Is(err, errOther) || errors.Is(err, errFull) || errors.Is(err, sql.ErrNoRows) || errors.Is(err, fs.ErrNotExist)
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

// setState notes a fact of the index.
func setState(ctx context.Context, q querier, key string, value any) error {
	if _, err := q.ExecContext(ctx, "INSERT OR REPLACE INTO state VALUES(?, ?)", key, fmt.Sprint(value)); err != nil {
		return fmt.Errorf("note the %s: %w", key, err)
	}
	return nil
}
