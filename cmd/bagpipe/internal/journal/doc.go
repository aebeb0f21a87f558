// Package journal owns the log of a program: records of log/slog, as text or as JSON, in a
// file that is opened anew when it was rotated, or on standard error.
//
// It must not know what is logged. A mutex guards the open file.
package journal
