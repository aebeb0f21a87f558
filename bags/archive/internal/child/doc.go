// Package child starts the process that reads one 7z or rar, and is the main function of
// that process.
//
// It owns the plan of the process; package confined owns its bounds. It must not know what
// members are for. The process belongs to the goroutine that starts it.
package child
