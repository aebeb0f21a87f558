package claim

import (
	"fmt"
	"os"
	"strings"
)

// Host is where an engine runs. BootID tells one boot of a machine from the
// next, and is the same in all containers of one kernel.
type Host struct {
	Name   string
	BootID string
	PID    int
}

const bootIDFile = "/proc/sys/kernel/random/boot_id"

// ThisHost describes this process. BootID stays empty where the system has none.
func ThisHost() (Host, error) {
	name, err := os.Hostname()
	if err != nil {
		return Host{}, fmt.Errorf("read the host's name: %w", err)
	}
	boot, _ := os.ReadFile(bootIDFile) // absent on other systems; the name then decides
	return Host{Name: name, BootID: strings.TrimSpace(string(boot)), PID: os.Getpid()}, nil
}

// sharesLocks tells whether a free flock seen from h proves that no process on
// the host so described can hold it.
func (h Host) sharesLocks(name, bootID string) bool {
	return h.BootID != "" && h.BootID == bootID || h.Name != "" && h.Name == name
}
