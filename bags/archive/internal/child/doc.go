// Package child starts the process that reads one 7z or rar, and is the main function of
// that process.
//
// It owns the bounds of the process: memory, files, its end. It must not know what
// members are for. The process belongs to the goroutine that starts it.
package child
