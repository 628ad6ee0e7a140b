//go:build wasip1

package component

import "periapt/internal/contract"

// The kinds of events, in the contract's order.
var kinds = []string{"install", "start", "stop", "remove", "config-changed", "upgrade-charm", "update-status", "leader-elected",
	"leader-settings-changed", "relation-created", "relation-joined", "relation-changed", "relation-departed",
	"relation-broken", "relation-batch", "storage-attached", "storage-detaching", "secret-changed", "secret-rotate",
	"secret-expired", "secret-remove", "pebble-ready", "pebble-custom-notice", "pebble-check-failed",
	"pebble-check-recovered", "action", "pre-series-upgrade", "post-series-upgrade", "collect-metrics",
	"meter-status-changed", "custom"}

func understood(kind uint32, parts [12]uint32) contract.Event {
	if int(kind) >= len(kinds) {
		return contract.Event{}
	}
	event := contract.Event{Kind: kinds[kind], Hook: kinds[kind]}
	text := func(at int) string { return textAt(parts[at], parts[at+1]) }
	texts := func(at int) []string { return listAt(parts[at], parts[at+1], 8, textOf) }
	named := func(name string) string { return name + "-" + event.Kind }
	switch event.Kind {
	case "relation-created", "relation-joined", "relation-changed", "relation-departed", "relation-broken", "relation-batch":
		event.Endpoint, event.Relation, event.App = text(0), parts[2], text(3)
		event.Hook = named(event.Endpoint)
	case "storage-attached", "storage-detaching":
		event.ID, event.Name, event.Location = text(0), text(2), text(5)
		event.Hook = named(event.Name)
	case "secret-changed", "secret-rotate", "secret-expired", "secret-remove":
		event.URI = text(0)
		if parts[2] != 0 {
			event.Label = text(3)
		}
	case "pebble-ready", "pebble-custom-notice", "pebble-check-failed", "pebble-check-recovered":
		event.Name = text(0)
		event.Hook = named(event.Name)
	case "action":
		event.Name, event.ID = text(0), text(2)
		event.Hook = named(event.Name)
	case "custom":
		event.Name, event.JSON = text(0), text(2)
		event.Hook = named(event.Name)
	}
	switch event.Kind {
	case "relation-joined":
		event.Unit = text(5)
	case "relation-changed":
		if parts[5] != 0 {
			event.Unit = text(6)
		}
	case "relation-departed":
		event.Unit, event.Departing = text(5), text(7)
	case "relation-batch":
		event.AppChanged = parts[5] != 0
		event.Joined, event.Changed, event.Departed = texts(6), texts(8), texts(10)
	case "secret-expired", "secret-remove":
		event.Revision = parts[5]
	case "pebble-custom-notice":
		event.ID, event.Key = text(2), text(6)
	case "pebble-check-failed", "pebble-check-recovered":
		event.Check = text(2)
	}
	return event
}
