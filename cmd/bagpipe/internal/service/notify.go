package service

import (
	"net"
	"os"
	"strconv"
	"time"
)

// What a manager is told.
const (
	Ready    = "READY=1"
	Alive    = "WATCHDOG=1"
	Stopping = "STOPPING=1"
)

// Tell tells the manager; nothing where there is none.
func Tell(state string) error {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return nil
	}
	if path[0] == '@' { // an abstract one
		path = "\x00" + path[1:]
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.Write([]byte(state))
	return err
}

// Beat is how often the manager wants to hear that the service is alive, twice as often as it
// must; 0: it does not.
func Beat() time.Duration {
	if pid := os.Getenv("WATCHDOG_PID"); pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return 0
	}
	us, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64)
	if err != nil || us <= 0 {
		return 0
	}
	return time.Duration(us) * time.Microsecond / 2
}
