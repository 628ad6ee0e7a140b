package periapt

import "periapt/internal/contract"

// State is what the charm keeps for its unit from one hook to the next: part of the hook's commit, gone with the unit.
type State struct{ host contract.Host }

// State answers what the charm keeps.
func (u *Unit) State() State { return State(*u) }

// Get answers what was kept under a key, and whether there is anything.
func (s State) Get(key string) (value string, isThere bool) { return s.host.State(key) }

// All of it, by key.
func (s State) All() map[string]string { return mapOf(s.host.AllState()) }

// Set keeps a value under a key; an empty one is a value.
func (s State) Set(key, value string) error { return s.Update(map[string]string{key: value}) }

// Update keeps several, all or none.
func (s State) Update(values map[string]string) error {
	return contract.About("state", s.host.SetState(pairsOf(values)))
}

// Delete forgets a key, if it is there.
func (s State) Delete(key string) error { return contract.About("state", s.host.DeleteState(key)) }
