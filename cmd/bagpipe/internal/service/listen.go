package service

import (
	"errors"
	"fmt"
	"net"
	"syscall"
)

// Listen opens HOST:PORT, which option gave, and words why it cannot be opened.
func Listen(option, address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	var wrong *net.AddrError
	var unknown *net.DNSError
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, syscall.EADDRINUSE):
		err = fmt.Errorf("another process listens at %s; stop it, or give another address with %s", address, option)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		err = fmt.Errorf("%s: %s is no address of this machine", option, address)
	case errors.Is(err, syscall.EACCES):
		err = fmt.Errorf("%s: this account may not listen at %s; ports from 1024 on are open to all", option, address)
	case errors.As(err, &wrong), errors.As(err, &unknown):
		err = fmt.Errorf("%s: expected HOST:PORT with a host of this machine and a port up to 65535, not %q", option, address)
	default:
		err = fmt.Errorf("%s: %w", option, err)
	}
	return nil, err
}
