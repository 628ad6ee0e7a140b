package contract

// Event is what happened. What it is not about is empty.
type Event struct {
	// Hook is its name, as hooks are called: config-changed, db-relation-joined, backup-action.
	Hook string
	// Kind is the same without the endpoint or name in front: relation-joined, action.
	Kind string
	// Attempt is 1 for the first.
	Attempt uint32

	// Endpoint and Relation are those of a relation's event.
	Endpoint string
	Relation uint32
	// App is the application at the other end.
	App string
	// Unit is the remote unit; empty in relation-changed: the application's bag changed.
	Unit string
	// Departing is who leaves, in relation-departed.
	Departing string
	// Joined, Changed, Departed and AppChanged are a relation-batch's.
	Joined, Changed, Departed []string
	AppChanged                bool

	// Name is an action's, a storage's, a workload's or a custom event's.
	Name string
	// ID is an action's, a storage's or a workload's notice's.
	ID string
	// Location is a storage's directory.
	Location string

	// Key is the key of a workload's notice, in pebble-custom-notice.
	Key string
	// Check is the name of a workload's check, in pebble-check-failed and pebble-check-recovered.
	Check string

	// URI, Label and Revision are a secret's.
	URI, Label string
	Revision   uint32

	// JSON is what the sender of a custom event gave.
	JSON string
}

// Failure is a hook's.
type Failure struct {
	Code    int32
	Message string
}

// Handler runs a hook; it answers whether there is a handler for it, and how that failed.
type Handler func(host Host, event Event) (isHandled bool, failure *Failure)
