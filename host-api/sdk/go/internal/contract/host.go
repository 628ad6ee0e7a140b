// Package contract says in Go what host-api/wit says: what a charm may ask, and what happened.
//
// The sandbox answers through package component, a unit in memory through package periapttest.
package contract

// Host answers what a hook asks. A refusal is an *Error.
type Host interface {
	Identity
	Config(key string) (Value, bool)
	IsLeader() (bool, error)

	Relations(endpoint string) []uint32
	RemoteApp(relation uint32) (string, error)
	Members(relation uint32) ([]string, error)
	Bag(relation uint32, bag Bag) ([]Pair, error)
	BagValue(relation uint32, bag Bag, key string) (string, bool, error)
	SetBag(relation uint32, bag OwnBag, changes []Pair) error

	OpenPorts(ports Ports, endpoints []string) error
	ClosePorts(ports Ports, endpoints []string) error
	OpenedPorts() []OpenedPorts

	SetStatus(workload Workload, message string) error
	SetAppStatus(workload Workload, message string) error
	SetVersion(version string) error
	Log(level Level, message string)

	State(key string) (string, bool)
	AllState() []Pair
	SetState(changes []Pair) error
	DeleteState(key string) error

	Params() (string, error)
	Param(path string) (string, bool, error)
	SetResults(results []Pair) error
	ActionLog(message string) error
	FailAction(message string) error

	AddSecret(owner Owner, content []Pair, metadata Metadata) (string, error)
	SetSecret(uri string, content []Pair, metadata Metadata) error
	Secret(uri, label string, mode Mode) ([]Pair, error)
	Secrets() ([]string, error)
	GrantSecret(uri string, relation uint32, unit string) error
	RevokeSecret(uri, reader string) error
	RemoveSecret(uri string) error

	Workloads
	Resource(name string) (Resource, error)
	Tool(name string, arguments []string) ToolOutput
}

// Identity is who and where the unit is.
type Identity interface {
	UnitName() string
	AppName() string
	ModelName() string
	PrivateAddress() (string, error)
}

// Workloads are streams of bytes to the unit's workloads. Times are in milliseconds; a negative one is without end.
type Workloads interface {
	Connect(target Target) (stream uint32, err error)
	Read(stream, most uint32, milliseconds int64) (Received, error)
	Write(stream uint32, bytes []byte, milliseconds int64) (written uint32, err error)
	EndWriting(stream uint32) error
	Close(stream uint32)
}

// Target is a container's Pebble, or a port if no container is named.
type Target struct {
	Container string
	Port      uint16
}

// Received is what came within a time; without bytes and end, nothing did.
type Received struct {
	Bytes []byte
	IsEnd bool
}

// Value is an option's: a string, an int64, a float64, a bool or a SecretURI.
type Value any

// SecretURI is the value of an option that names a secret.
type SecretURI string

// Pair is a key and its value: of a bag, of the state, of a secret's content.
type Pair struct{ Key, Value string }

// Bag is one that is read: a unit's, or an application's.
type Bag struct {
	Owner string
	IsApp bool
}

// OwnBag is one that this unit writes.
type OwnBag uint32

// In the contract's order.
const (
	UnitBag OwnBag = iota
	AppBag
)

// Protocol is what ports are of.
type Protocol uint8

// In the contract's order.
const (
	TCP Protocol = iota
	UDP
	ICMP
)

// Ports is a range of one protocol's; ICMP has none.
type Ports struct {
	Protocol    Protocol
	First, Last uint16
}

// OpenedPorts are open for some endpoints, or for all if none is named.
type OpenedPorts struct {
	Ports     Ports
	Endpoints []string
}

// Workload is what a charm may say of its workload.
type Workload uint32

// In the contract's order.
const (
	Maintenance Workload = iota
	Blocked
	Waiting
	Active
)

// Level is a log line's.
type Level uint32

// In the contract's order.
const (
	Trace Level = iota
	Debug
	Info
	Warning
	ErrorLevel
)

// Owner is a secret's.
type Owner uint32

// In the contract's order.
const (
	AppOwned Owner = iota
	UnitOwned
)

// Mode is which revision of a secret is read.
type Mode uint32

// In the contract's order.
const (
	Tracked Mode = iota
	Peek
	Refresh
)

// Metadata is said of a secret beside its content; what is empty stays, or has its default.
type Metadata struct {
	// Label is unique among the owner's secrets.
	Label string
	// Description is for operators.
	Description string
	// Rotate is a policy by its name: never, hourly, daily, weekly, monthly, quarterly, yearly.
	Rotate string
	// Expire is a duration such as 24h, or a time in RFC 3339.
	Expire string
}

// Policies are those of Metadata.Rotate, in the contract's order.
var Policies = []string{"never", "hourly", "daily", "weekly", "monthly", "quarterly", "yearly"}

// Resource is the file of a resource.
type Resource struct {
	// Path is where it is found for the rest of the hook, to read.
	Path string
	// Revision rises by one with each content that is attached.
	Revision uint32
	// Size in bytes.
	Size uint64
	// SHA256 of the content, in hex digits.
	SHA256 string
}

// ToolOutput is what a hook tool said.
type ToolOutput struct {
	ExitCode       uint8
	Stdout, Stderr string
}
