package timetable

import (
	"fmt"
	"slices"
	"strings"

	"github.com/netresearch/go-cron"
)

// cronFields are the fields of a cron line, and what each may be.
var cronFields = [...]struct{ name, of string }{
	{"minute", "0 to 59"}, {"hour", "0 to 23"}, {"day", "1 to 31"}, {"month", "1 to 12, or JAN to DEC"}, {"weekday", "0 to 7, or SUN to SAT"},
}

// cronFault names the first field at fault of the five of a line that cannot be read.
func cronFault(fields []string) error {
	for i, f := range cronFields {
		alone := strings.Split("* * * * *", " ")
		alone[i] = fields[i]
		if _, err := cron.ParseStandard(strings.Join(alone, " ")); err != nil {
			return fmt.Errorf("%s %q: expected %s; *, lists as 1,3, ranges as 1-3 and steps as */2 of them", f.name, fields[i], f.of)
		}
	}
	return fmt.Errorf("%q cannot be read as minute hour day month weekday", strings.Join(slices.Clone(fields), " "))
}
