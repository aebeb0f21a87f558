package search

import (
	"bytes"
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"testing"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// TestCachesAreKept: the pages of a connection's cache lie in the memory that is kept for them.
func TestCachesAreKept(t *testing.T) {
	db, conn, err := openDB(t.Context(), filepath.Join(t.TempDir(), "x.db"))
	if err == nil {
		_, err = conn.ExecContext(t.Context(), "CREATE TABLE list(part INTEGER)")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = conn.Close(), db.Close() }()
	tls := libc.NewTLS()
	defer tls.Close()
	used := tls.Alloc(2 * 4)
	defer tls.Free(2 * 4)
	if rc := sqlite3.Xsqlite3_status(tls, sqlite3.SQLITE_STATUS_PAGECACHE_USED, used, used+4, 0); rc != sqlite3.SQLITE_OK || *at[int32](used) == 0 {
		t.Errorf("%d pages lie there (%d)", *at[int32](used), rc)
	}
}

// TestLongValues: values that take several pages, which SQLite reads past its cache and without their sums, are read as
// they were written, and are damage where they are not.
func TestLongValues(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	open := func(f func(*sql.Conn) error) error {
		db, conn, err := openDB(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _, _ = conn.Close(), db.Close() }()
		return f(conn)
	}
	var want []byte
	for i := range 5 * pageBytes / 4 {
		want = append(want, byte(i>>8), byte(i), 'x', 'y')
	}
	if err := open(func(c *sql.Conn) error {
		_, err := c.ExecContext(t.Context(), "CREATE TABLE list(part INTEGER, docs BLOB)")
		for i := 0; i < 4 && err == nil; i++ {
			_, err = c.ExecContext(t.Context(), "INSERT INTO list VALUES(?,?)", i, want[:len(want)-i*pageBytes])
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	read := func(c *sql.Conn) error {
		for i := range 4 {
			var docs []byte
			if err := c.QueryRowContext(context.Background(), "SELECT docs FROM list WHERE part=?", i).Scan(&docs); err != nil {
				return err
			}
			if !bytes.Equal(docs, want[:len(want)-i*pageBytes]) {
				t.Errorf("value %d is another than was written", i)
			}
		}
		return nil
	}
	if err := open(read); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)-pageBytes/2] ^= 1
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := open(read); !damaged(err) {
		t.Errorf("of a damaged value the error is %v", err)
	}
}
