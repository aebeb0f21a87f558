package bus

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"
)

// A NATS server that is too old to take several offers at once is refused, with its version.
func TestAnOldServerIsRefused(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go old(c)
		}
	}()
	seed, _, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	_, err = DialEngine(ctx, Outside{URLs: []string{"nats://" + l.Addr().String()}, Seed: seed}, slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), "version 2.11.4; 2.12 or newer is needed") {
		t.Errorf("it answers %v", err)
	}
}

// old is a server of NATS 2.11, as far as a client asks before it knows the version.
func old(c net.Conn) {
	defer c.Close()
	fmt.Fprintf(c, "INFO {\"server_id\":\"OLD\",\"version\":\"2.11.4\",\"proto\":1,\"headers\":true,\"max_payload\":1048576,\"jetstream\":true,\"nonce\":\"0123456789a\"}\r\n")
	for in := bufio.NewScanner(c); in.Scan(); {
		if in.Text() == "PING" {
			fmt.Fprint(c, "PONG\r\n")
		}
	}
}
