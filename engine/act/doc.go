// Package act owns people's decisions on items, steps and workflows. Each is one commit
// by the person whose Acts it is called on; As gives those of another person.
//
// It must not know how a decision is shown or asked for. Acts hold no state and no lock,
// and may be used by several goroutines.
package act
