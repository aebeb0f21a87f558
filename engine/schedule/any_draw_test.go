package schedule_test

import (
	"fmt"
	"math/rand"
	"slices"
	"time"
)

// trigger is what the schedule is fired by, as it is written.
func (m *anyModel) trigger(name string) (trigger string) {
	switch {
	case m.queue:
		trigger = "queue: " + queueOf(name)
	case m.cron != nil:
		trigger = "cron: '" + m.cron.cron + "'"
	case m.every > 0:
		trigger = "every: " + fmt.Sprint(int(m.every.Minutes())) + "m"
	default:
		trigger = "at: '" + m.at.UTC().Format(time.RFC3339) + "'"
	}
	if len(m.hours) > 0 {
		trigger += fmt.Sprintf(", between: ['%02d:00', '%02d:00']", m.hours[0], m.hours[1])
	}
	return trigger
}

// file is the schedule as it is written.
func (m *anyModel) file(name string) []byte {
	more, do := "", "do: {start: accession}"
	if m.queue {
		do = fmt.Sprint("parallel: ", atOnce)
	}
	if m.within > 0 {
		more = fmt.Sprintf("within: %dm\n", int(m.within.Minutes()))
	}
	return fmt.Appendf(nil, "schema: 1\nname: %s\ntrigger: {%s}\nzone: %s\noverlap: %s\nmissed: %s\n%s%s\n", name, m.trigger(name), m.zone, m.overlap, m.missed, more, do)
}

// draw draws when a schedule is due.
func (m *anyModel) draw(random *rand.Rand, now time.Time) {
	m.cron, m.every, m.at, m.queue, m.hours = nil, 0, time.Time{}, false, nil
	switch random.Intn(8) {
	case 0:
		m.at = now.Add(time.Duration(1+random.Intn(200)) * time.Minute).Truncate(time.Minute).Add(30 * time.Second)
	case 1, 2:
		m.every = time.Duration(3+random.Intn(40)) * time.Minute
	case 3, 4:
		m.queue = true
	default:
		m.cron = &lines[random.Intn(len(lines))]
		if random.Intn(3) == 0 {
			m.cron = &lines[1] // that is often due
		}
	}
	if (m.every > 0 || m.queue) && random.Intn(2) == 0 {
		m.hours = []int{random.Intn(12), 12 + random.Intn(12)}
		if random.Intn(2) == 0 {
			slices.Reverse(m.hours)
		}
	}
}
