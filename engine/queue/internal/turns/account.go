package turns

// Account is whose turn it is, of one lane, collection or batch; the zero Account is the
// root of all.
type Account struct {
	turn   float64
	clock  float64 // the turn of the member that was taken from last
	within map[uint64]*Account
	held   int // entries, in the trees of all steps
	came   int // its number among those within the same account, as they came
	comers int // how many have come within it
}

func (a *Account) of(key uint64) *Account {
	in := a.within[key]
	if in == nil {
		if a.within == nil {
			a.within = map[uint64]*Account{}
		}
		in = &Account{}
		a.within[key] = in
	}
	return in
}

// enter counts an entry; the first one makes the account one of those in turn.
func (a *Account) enter(around *Account, stride float64) {
	if a.held++; a.held == 1 {
		a.turn = max(a.turn, around.clock+stride)
		around.comers++
		a.came = around.comers
	}
}

// taken moves the turn on.
func (a *Account) taken(around *Account, stride float64) {
	around.clock = max(around.clock, a.turn)
	a.turn += stride
}
