package timetable

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func parse(t testing.TB, more string) *Schedule {
	t.Helper()
	s, err := Parse("schedules/s.yaml", []byte("schema: 1\nname: s\ndo: {command: ['true']}\n"+more))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func moment(t testing.TB, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestNext(t *testing.T) {
	const berlin = "zone: Europe/Berlin\n"
	for name, tc := range map[string]struct{ more, after, want string }{
		"a line":                      {"trigger: {cron: '30 2 * * *'}\n", "2026-11-23T10:00:00Z", "2026-11-24T02:30:00Z 2026-11-25T02:30:00Z"},
		"of a zone":                   {berlin + "trigger: {cron: '30 2 * * *'}\n", "2026-11-23T10:00:00Z", "2026-11-24T01:30:00Z"},
		"left out in spring":          {berlin + "trigger: {cron: '30 2 * * *'}\n", "2026-03-28T12:00:00Z", "2026-03-29T01:00:00Z 2026-03-30T00:30:00Z"},
		"repeated in autumn":          {berlin + "trigger: {cron: '30 2 * * *'}\n", "2026-10-24T12:00:00Z", "2026-10-25T00:30:00Z 2026-10-26T01:30:00Z"},
		"both of a repeated hour":     {berlin + "trigger: {cron: '30 * * * *'}\n", "2026-10-25T00:00:00Z", "2026-10-25T00:30:00Z 2026-10-25T01:30:00Z 2026-10-25T02:30:00Z"},
		"quarters of a repeated hour": {berlin + "trigger: {cron: '*/15 * * * *'}\n", "2026-10-24T23:59:00Z", "2026-10-25T00:00:00Z 2026-10-25T00:15:00Z 2026-10-25T00:30:00Z 2026-10-25T00:45:00Z 2026-10-25T01:00:00Z 2026-10-25T01:15:00Z 2026-10-25T01:30:00Z 2026-10-25T01:45:00Z 2026-10-25T02:00:00Z"},
		"half an hour put forward":    {"zone: Australia/Lord_Howe\ntrigger: {cron: '15 2 * * *'}\n", "2026-10-03T12:00:00Z", "2026-10-03T15:30:00Z"},
		"a leap day":                  {"trigger: {cron: '0 0 29 2 *'}\n", "2026-11-23T10:00:00Z", "2028-02-29T00:00:00Z"},
		"every":                       {"trigger: {every: 6h}\n", "2026-11-23T10:00:00Z", "2026-11-23T16:00:00Z"},
		"every, in days":              {"trigger: {every: 7d}\n", "2026-11-23T10:00:00Z", "2026-11-30T10:00:00Z"},
		"every, in months":            {berlin + "trigger: {every: 1mo}\n", "2026-01-31T10:00:00Z", "2026-02-28T10:00:00Z 2026-03-28T10:00:00Z 2026-04-28T09:00:00Z"},
		"at, once":                    {"trigger: {at: '2026-12-24T18:00:00+01:00'}\n", "2026-11-23T10:00:00Z", "2026-12-24T17:00:00Z never"},
		"at, past":                    {"trigger: {at: '2026-01-01'}\n", "2026-11-23T10:00:00Z", "never"},
		"every, of hours":             {berlin + "trigger: {every: 6h, between: ['20:00', '06:00']}\n", "2026-11-23T10:00:00Z", "2026-11-23T19:00:00Z"},
		"every, within hours":         {berlin + "trigger: {every: 6h, between: ['20:00', '06:00']}\n", "2026-11-23T20:00:00Z", "2026-11-24T02:00:00Z"},
		"from":                        {berlin + "trigger: {cron: '0 0 * * *'}\nfrom: 2026-12-01\n", "2026-11-23T10:00:00Z", "2026-11-30T23:00:00Z"},
		"until":                       {"trigger: {cron: '0 12 * * *'}\nuntil: 2026-11-24\n", "2026-11-23T10:00:00Z", "2026-11-23T12:00:00Z never"},
	} {
		t.Run(name, func(t *testing.T) {
			s, at := parse(t, tc.more), moment(t, tc.after)
			for _, want := range strings.Fields(tc.want) {
				due, ever := s.Next(at, time.Time{})
				got := "never"
				if ever {
					got = due.Format(time.RFC3339)
				}
				if got != want {
					t.Fatalf("after %s: %s, want %s", at, got, want)
				}
				at = due
			}
		})
	}
}

// Minute by minute, in zones that put their clocks in different ways, a line for fixed hours is
// due once a day.
func TestNextAgainstTheWall(t *testing.T) {
	for _, zone := range []string{"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/St_Johns", "Asia/Kathmandu", "Pacific/Apia", "Africa/Casablanca"} {
		t.Run(zone, func(t *testing.T) {
			s := parse(t, "zone: "+zone+"\ntrigger: {cron: '30 2 * * *'}\n")
			at, days := moment(t, "2025-01-01T00:00:00Z"), map[string]int{}
			for {
				due, ever := s.Next(at, time.Time{})
				if !ever || !due.After(at) {
					t.Fatalf("after %s: %s", at, due)
				}
				if at = due; at.Year() > 2027 {
					break
				}
				wall := at.In(s.reckoned.zone)
				days[wall.Format(time.DateOnly)]++
				if hour := wall.Hour(); hour != 2 && hour != 3 {
					t.Errorf("due at %s", wall)
				}
			}
			for day, n := range days {
				if n != 1 {
					t.Errorf("due %d times on %s", n, day)
				}
			}
			if len(days) < 3*365-2 {
				t.Errorf("due on %d days of three years", len(days))
			}
		})
	}
}

func TestDue(t *testing.T) {
	const line = "trigger: {cron: '0 * * * *'}\n"
	for name, tc := range map[string]struct{ more, since, now, fire, passed string }{
		"nothing":           {line, "2026-11-23T10:00:00Z", "2026-11-23T10:59:59Z", "", ""},
		"one":               {line, "2026-11-23T10:00:00Z", "2026-11-23T11:00:01Z", "11:00", ""},
		"missed, once":      {line, "2026-11-23T10:00:00Z", "2026-11-23T14:30:00Z", "14:00", ""},
		"missed for long":   {"trigger: {cron: '* * * * *'}\n", "2026-11-01T10:00:00Z", "2026-11-23T14:30:30Z", "14:30", ""},
		"once, too old":     {line + "within: 10m\n", "2026-11-23T10:00:00Z", "2026-11-23T12:30:00Z", "", "12:00"},
		"missed, all":       {line + "missed: all\n", "2026-11-23T10:00:00Z", "2026-11-23T12:30:00Z", "11:00 12:00", ""},
		"missed, skipped":   {line + "missed: skip\n", "2026-11-23T10:00:00Z", "2026-11-23T12:30:00Z", "", "12:00"},
		"skip, but just so": {line + "missed: skip\n", "2026-11-23T10:00:00Z", "2026-11-23T12:00:30Z", "12:00", ""},
		"too old":           {line + "missed: all\nwithin: 90m\n", "2026-11-23T10:00:00Z", "2026-11-23T13:15:00Z", "12:00 13:00", "11:00"},
	} {
		t.Run(name, func(t *testing.T) {
			fire, passed := parse(t, tc.more).Due(moment(t, tc.since), time.Time{}, moment(t, tc.now))
			var got []string
			for _, f := range fire {
				got = append(got, f.Format("15:04"))
			}
			last := ""
			if !passed.IsZero() {
				last = passed.Format("15:04")
			}
			if strings.Join(got, " ") != tc.fire || last != tc.passed {
				t.Errorf("fires %v, passes over %q", got, last)
			}
		})
	}
}

// A machine that sleeps, and whose clock leaps ahead and back, fires each time that is due at
// most once, in order, and never one that is still to come.
func TestDueUnderAnyClock(t *testing.T) {
	zones := []string{"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/St_Johns", "Asia/Kathmandu", "Pacific/Apia", "Africa/Casablanca"}
	lines := []string{"30 2 * * *", "*/15 * * * *", "0 0 1 * *", "15 1,2,3 * * 0", "0 */6 * * *"}
	rapid.Check(t, func(t *rapid.T) {
		zone, line := rapid.SampledFrom(zones).Draw(t, "zone"), rapid.SampledFrom(lines).Draw(t, "line")
		missed := rapid.SampledFrom([]string{"once", "skip", "all"}).Draw(t, "missed")
		s, err := Parse("schedules/s.yaml", fmt.Appendf(nil, "schema: 1\nname: s\ndo: {command: ['true']}\nzone: %s\ntrigger: {cron: '%s'}\nmissed: %s\n", zone, line, missed))
		if err != nil {
			t.Fatal(err)
		}
		now := time.Date(2026, 3, 20, 0, 0, 0, 0, time.UTC).Add(time.Duration(rapid.IntRange(0, 300*24*60).Draw(t, "begin")) * time.Minute)
		through, begin := now, now
		for range 40 {
			now = now.Add(time.Duration(rapid.OneOf(rapid.IntRange(1, 90), rapid.IntRange(-200, 4000)).Draw(t, "minutes")) * time.Minute)
			fire, passed := s.Due(through, time.Time{}, now)
			for _, due := range fire {
				if due.After(now) || !due.After(through) {
					t.Fatalf("at %s, through %s: fires %s", now, through, due)
				}
				through = due
			}
			if passed.After(now) {
				t.Fatalf("at %s passes over %s", now, passed)
			}
			if passed.After(through) {
				through = passed
			}
			// Minute by minute, nothing that the wall shows is left over.
			for at := now.Add(-3 * time.Hour).Truncate(time.Minute); missed != "all" && !at.After(now); at = at.Add(time.Minute) {
				if at.After(through) && at.After(begin) && s.onTheWall(at) {
					t.Fatalf("at %s, through %s: %s was due", now, through, at.In(s.reckoned.zone))
				}
			}
		}
	})
}

// onTheWall reports whether the line names the time that the zone's clock shows, for the first
// time or in an hour of every.
func (s *Schedule) onTheWall(at time.Time) bool {
	r := &s.reckoned
	wall := asUTC(at.In(r.zone))
	if !r.cron.Next(wall.Add(-time.Second)).Equal(wall) {
		return false
	}
	first, _ := r.shown(wall)
	return r.hourly || first.Equal(at)
}

func TestParseRefuses(t *testing.T) {
	for _, tc := range []struct{ more, want string }{
		{"trigger: {cron: '31 2'}", "five fields"},
		{"trigger: {cron: '*/0 * * * *'}", "s.yaml:4:17: minute \"*/0\": expected 0 to 59"},
		{"trigger: {cron: '99 2 * * *'}", "minute \"99\": expected 0 to 59; *, lists"},
		{"trigger: {cron: '0 24 * * *'}", "hour \"24\": expected 0 to 23"},
		{"trigger: {cron: '0 0 0 * *'}", "day \"0\": expected 1 to 31"},
		{"trigger: {cron: '0 0 * 13 *'}", "month \"13\": expected 1 to 12, or JAN to DEC"},
		{"trigger: {cron: '0 0 * * Freitag'}", "weekday \"Freitag\": expected 0 to 7, or SUN to SAT"},
		{"trigger: {cron: '0 0 31 2 *'}", "never due"},
		{"trigger: {cron: '0 0 * * *', every: 1h}", "expected one of cron, every, at and queue"},
		{"trigger: {every: fast}", "such as 30s"},
		{"trigger: {every: 0mo}", "such as 1mo"},
		{"trigger: {every: 1h}\nzone: Europe/Nowhere", "time zone"},
		{"trigger: {every: 1h}\nfrom: 2026-12-01\nuntil: 2026-11-01", "after from"},
		{"trigger: {every: 1h}\nmissed: never", "once, skip or all"},
		{"trigger: {mem_queue: x}", "queues in memory"},
		{"trigger: {other: x}", "fires the schedule"},
		{"trigger: {queue: q}", "work on that queue"},
		{"trigger: {cron: '0 0 * * *', between: ['20:00', '06:00']}", "bounds every: and queue:"},
		{"trigger: {every: 1h, between: ['20:00']}", "two times of the day"},
		{"trigger: {every: 1h, between: ['20:00', '25:00']}", "not \"25:00\""},
		{"trigger: {every: 1h}\nparallel: 2", "of queue or fixity"},
		{"trigger: {every: 1h}\noverlap: maybe", "skip, wait or replace"},
		{"trigger: {every: 1h}\nkeep: long", "such as 90d"},
		{"trigger: {at: tomorrow}", "expected a date"},
		{"trigger: {every: 1h}\ntimeout: 0s", "such as 4h"},
	} {
		_, err := Parse("schedules/s.yaml", []byte("schema: 1\nname: s\ndo: {command: ['true']}\n"+tc.more+"\n"))
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", tc.more, err)
		}
	}
	for do, want := range map[string]string{"{}": "4:5: do: says what is done, and has one of command, deliver", "{fixity: nothing}": `not "nothing"`, "{fixity: items, sample: 500%}": "500%",
		"{start: w, where: '((('}": "expected a path such as", "{command: [a], start: w}": "has one of command", "{fixity: items, with: {a: 1}}": "given to a command",
		"{deliver: now}": `4:15: expected due, not "now"`, "{dispose: all}": `4:15: expected due, not "all"`, "{fixity: items, sampel: 5%}": `unknown key "sampel"; did you mean sample?`} {
		_, err := Parse("schedules/s.yaml", fmt.Appendf(nil, "schema: 1\nname: s\ntrigger: {every: 1h}\ndo: %s\n", do))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", do, err)
		}
	}
}
