package periapt

import (
	"fmt"
	"sort"

	"periapt/internal/contract"
)

// Relation is one of the unit's.
type Relation struct {
	// ID is its number in the model.
	ID uint32
	// Endpoint is that of this unit's side.
	Endpoint string
	host     contract.Host
}

// Relations are those of an endpoint.
func (u *Unit) Relations(endpoint string) []*Relation {
	var all []*Relation
	for _, id := range u.host.Relations(endpoint) {
		all = append(all, &Relation{ID: id, Endpoint: endpoint, host: u.host})
	}
	return all
}

func (r *Relation) String() string { return fmt.Sprintf("%s:%d", r.Endpoint, r.ID) }

// App is the application at the other end; in a peer relation, the unit's own.
func (r *Relation) App() (string, error) {
	app, err := r.host.RemoteApp(r.ID)
	return app, contract.About(r.String(), err)
}

// Units are the remote units that this unit has been told of, sorted.
func (r *Relation) Units() ([]string, error) {
	units, err := r.host.Members(r.ID)
	return units, contract.About(r.String(), err)
}

// BagOf is the bag of a remote unit.
func (r *Relation) BagOf(unit string) Bag { return Bag{r, contract.Bag{Owner: unit}} }

// RemoteBag is the bag of the application at the other end.
func (r *Relation) RemoteBag() (Bag, error) {
	app, err := r.App()
	return r.appBagOf(app), err
}

func (r *Relation) appBagOf(app string) Bag { return Bag{r, contract.Bag{Owner: app, IsApp: true}} }

// UnitBag is this unit's own.
func (r *Relation) UnitBag() OwnBag { return OwnBag{r.BagOf(r.host.UnitName()), contract.UnitBag} }

// AppBag is that of this unit's application, which only its leader writes.
func (r *Relation) AppBag() OwnBag { return OwnBag{r.appBagOf(r.host.AppName()), contract.AppBag} }

// Bag is one of a relation's, to read.
type Bag struct {
	relation *Relation
	whose    contract.Bag
}

func (b Bag) String() string { return fmt.Sprintf("bag of %s in %s", b.whose.Owner, b.relation) }

// Get answers the value of a key; it is empty if there is none, since no bag holds an empty value.
func (b Bag) Get(key string) (string, error) {
	value, _, err := b.relation.host.BagValue(b.relation.ID, b.whose, key)
	return value, contract.About(b.String(), err)
}

// All of it, by key.
func (b Bag) All() (map[string]string, error) {
	pairs, err := b.relation.host.Bag(b.relation.ID, b.whose)
	return mapOf(pairs), contract.About(b.String(), err)
}

// OwnBag is one that this unit writes.
type OwnBag struct {
	Bag
	which contract.OwnBag
}

// Set sets a key; an empty value deletes it.
func (b OwnBag) Set(key, value string) error { return b.Update(map[string]string{key: value}) }

// Update sets several keys, all or none.
func (b OwnBag) Update(values map[string]string) error {
	err := b.relation.host.SetBag(b.relation.ID, b.which, pairsOf(values))
	return contract.About(b.String(), err)
}

func mapOf(pairs []contract.Pair) map[string]string {
	all := make(map[string]string, len(pairs))
	for _, pair := range pairs {
		all[pair.Key] = pair.Value
	}
	return all
}

// pairsOf is sorted: what a charm asks for does not depend on the order of its maps.
func pairsOf(values map[string]string) []contract.Pair {
	all := make([]contract.Pair, 0, len(values))
	for key, value := range values {
		all = append(all, contract.Pair{Key: key, Value: value})
	}
	sort.Slice(all, func(one, other int) bool { return all[one].Key < all[other].Key })
	return all
}
