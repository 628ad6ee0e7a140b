package periapt

import (
	"fmt"

	"periapt/internal/contract"
)

// Event is what happened. What it is not about is empty.
type Event struct {
	contract.Event
	// Relation is that of a relation's event; else nil.
	Relation *Relation
}

func shown(host contract.Host, event contract.Event) Event {
	if event.Endpoint == "" {
		return Event{Event: event}
	}
	return Event{event, &Relation{ID: event.Relation, Endpoint: event.Endpoint, host: host}}
}

// RemoteBag is the bag that relation-joined and relation-changed are about: the remote unit's, or the application's.
func (e Event) RemoteBag() (Bag, error) {
	switch {
	case e.Relation == nil:
		return Bag{}, fmt.Errorf("%s is about no relation", e.Hook)
	case e.Unit == "":
		return e.Relation.appBagOf(e.App), nil
	default:
		return e.Relation.BagOf(e.Unit), nil
	}
}
