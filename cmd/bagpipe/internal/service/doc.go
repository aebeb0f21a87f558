// Package service owns what a running service tells the manager that started it: that it is
// ready, alive, or stopping (sd_notify(3) of systemd); and how it opens the addresses it is asked at.
//
// It must not know what the service does. It has no state: where no manager asks, it does
// nothing.
package service
