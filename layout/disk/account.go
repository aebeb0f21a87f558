package disk

import (
	"os"
	"os/user"
	"strconv"

	"golang.org/x/sys/unix"
)

// AccountName is an account's name, or its number where it has none.
func AccountName(uid int) string {
	text := strconv.Itoa(uid)
	if u, err := user.LookupId(text); err == nil {
		return u.Username
	}
	return text
}

// ForeignOwner gives the account that a path belongs to when it is another than the one
// this process acts as; empty: it is this one. Links are followed.
func ForeignOwner(path string) (account string, err error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return "", &os.PathError{Op: "stat", Path: path, Err: err}
	}
	if int(st.Uid) == os.Geteuid() {
		return "", nil
	}
	return AccountName(int(st.Uid)), nil
}
