package files

import "testing"

func TestNamesThatWindowsCannotHold(t *testing.T) {
	for _, name := range []string{
		"con", "CON.txt", "aux.tar.gz", "nul", "prn", "com1", "LPT9.x", "COM¹", "lpt³.txt", "CONIN$", "conout$.log", "con .txt", "a?b", `a\b`, "a.", "a ", "d/nul/x",
	} {
		if WindowsHostile(name) == "" {
			t.Errorf("%q is taken for a name that Windows can hold", name)
		}
	}
	for _, name := range []string{"console", "con1", "com0", "com10", "lpt", "nullity", "a.con", "COM⁴", "größe.txt", ".con", "content/auxiliary.txt"} {
		if why := WindowsHostile(name); why != "" {
			t.Errorf("%q %s", name, why)
		}
	}
}
