//go:build wasip1

package component

import (
	"math"
	"runtime"
	"slices"
	"sync"
	"unsafe"

	"periapt/internal/contract"
)

// host is the sandbox.
type host struct{}

// calling keeps the goroutines of a charm from asking at a time: there is one answer.
var calling sync.Mutex

// asked makes a call whose answer is read before the next one.
func asked[T any](call func(into unsafe.Pointer), read func(answer) T) T {
	calling.Lock()
	defer calling.Unlock()
	answered := newAnswer()
	call(answered.pointer())
	return read(answered)
}

// refusable makes a call that the host may refuse; what it answers otherwise is read from an offset of four bytes.
func refusable[T any](call func(into unsafe.Pointer), read func(answer) T) (value T, err error) {
	asked(call, func(a answer) struct{} {
		if err = a.refusal(); err == nil {
			value = read(a + 4)
		}
		return struct{}{}
	})
	return value, err
}

// done makes a call that answers nothing, unless it is refused.
func done(call func(into unsafe.Pointer)) error { return asked(call, answer.refusal) }

// withPairs makes a call with a list of pairs, which stay where they are meanwhile.
func withPairs(pairs []contract.Pair, call func(list unsafe.Pointer, count uint32)) {
	lent := lentPairs(pairs)
	call(unsafe.Pointer(unsafe.SliceData(lent)), uint32(len(lent)))
	runtime.KeepAlive(pairs)
	runtime.KeepAlive(lent)
}

// withTexts is the same with a list of texts.
func withTexts(texts []string, call func(list unsafe.Pointer, count uint32)) {
	lent := lentTexts(texts)
	call(unsafe.Pointer(unsafe.SliceData(lent)), uint32(len(lent)))
	runtime.KeepAlive(texts)
	runtime.KeepAlive(lent)
}

func pairOf(a answer) contract.Pair { return contract.Pair{Key: a.text(0), Value: a.text(8)} }

func pairsOf(a answer) []contract.Pair { return list(a, 0, 16, pairOf) }

func textsOf(a answer) []string { return list(a, 0, 8, textOf) }

// optional is a text that may be there.
type optional struct {
	text    string
	isThere bool
}

func optionalOf(a answer) optional {
	if !a.is(0) {
		return optional{}
	}
	return optional{a.text(4), true}
}

func (host) UnitName() string  { return asked(identityUnitName, textOf) }
func (host) AppName() string   { return asked(identityApplicationName, textOf) }
func (host) ModelName() string { return asked(identityModelName, textOf) }

func (host) PrivateAddress() (string, error) { return refusable(identityPrivateAddress, textOf) }

func (host) Config(key string) (contract.Value, bool) {
	value := asked(func(into unsafe.Pointer) { configGet(key, into) }, func(a answer) contract.Value {
		if !a.is(0) {
			return nil
		}
		switch a.byte(8) {
		case 0:
			return a.text(16)
		case 1:
			return int64(a.uint64(16))
		case 2:
			return math.Float64frombits(a.uint64(16))
		case 3:
			return a.is(16)
		default:
			return contract.SecretURI(a.text(16))
		}
	})
	return value, value != nil
}

func (host) IsLeader() (bool, error) {
	return refusable(leadershipIsLeader, func(a answer) bool { return a.is(0) })
}

func (host) Relations(endpoint string) []uint32 {
	return asked(func(into unsafe.Pointer) { relationsIDs(endpoint, into) }, func(a answer) []uint32 {
		return list(a, 0, 4, func(a answer) uint32 { return a.uint32(0) })
	})
}

func (host) RemoteApp(relation uint32) (string, error) {
	return refusable(func(into unsafe.Pointer) { relationsRemoteApplication(relation, into) }, textOf)
}

func (host) Members(relation uint32) ([]string, error) {
	return refusable(func(into unsafe.Pointer) { relationsMembers(relation, into) }, textsOf)
}

func kindOf(bag contract.Bag) uint32 {
	if bag.IsApp {
		return 1
	}
	return 0
}

func (host) Bag(relation uint32, bag contract.Bag) ([]contract.Pair, error) {
	return refusable(func(into unsafe.Pointer) { relationsGet(relation, kindOf(bag), bag.Owner, into) }, pairsOf)
}

func (host) BagValue(relation uint32, bag contract.Bag, key string) (string, bool, error) {
	value, err := refusable(func(into unsafe.Pointer) {
		relationsGetValue(relation, kindOf(bag), bag.Owner, key, into)
	}, optionalOf)
	return value.text, value.isThere, err
}

func (host) SetBag(relation uint32, bag contract.OwnBag, changes []contract.Pair) error {
	return done(func(into unsafe.Pointer) {
		withPairs(changes, func(list unsafe.Pointer, count uint32) {
			relationsSet(relation, uint32(bag), list, count, into)
		})
	})
}

func (host) OpenPorts(ports contract.Ports, endpoints []string) error {
	return done(func(into unsafe.Pointer) {
		withTexts(endpoints, func(list unsafe.Pointer, count uint32) {
			portsOpen(uint32(ports.Protocol), uint32(ports.First), uint32(ports.Last), list, count, into)
		})
	})
}

func (host) ClosePorts(ports contract.Ports, endpoints []string) error {
	return done(func(into unsafe.Pointer) {
		withTexts(endpoints, func(list unsafe.Pointer, count uint32) {
			portsClose(uint32(ports.Protocol), uint32(ports.First), uint32(ports.Last), list, count, into)
		})
	})
}

func (host) OpenedPorts() []contract.OpenedPorts {
	return asked(portsOpened, func(a answer) []contract.OpenedPorts {
		return list(a, 0, 16, func(a answer) contract.OpenedPorts {
			ports := contract.Ports{Protocol: contract.Protocol(a.byte(0))}
			if ports.Protocol != contract.ICMP {
				ports.First, ports.Last = a.uint16(2), a.uint16(4)
			}
			return contract.OpenedPorts{Ports: ports, Endpoints: textsOf(a + 8)}
		})
	})
}

func (host) SetStatus(workload contract.Workload, message string) error {
	return done(func(into unsafe.Pointer) { statusSet(uint32(workload), message, into) })
}

func (host) SetAppStatus(workload contract.Workload, message string) error {
	return done(func(into unsafe.Pointer) { statusSetApplication(uint32(workload), message, into) })
}

func (host) SetVersion(version string) error {
	return done(func(into unsafe.Pointer) { statusSetApplicationVersion(version, into) })
}

func (host) Log(level contract.Level, message string) {
	calling.Lock()
	defer calling.Unlock()
	logWrite(uint32(level), message)
}

func (host) State(key string) (string, bool) {
	value := asked(func(into unsafe.Pointer) { stateGet(key, into) }, optionalOf)
	return value.text, value.isThere
}

func (host) AllState() []contract.Pair { return asked(stateGetAll, pairsOf) }

func (host) SetState(changes []contract.Pair) error {
	return done(func(into unsafe.Pointer) {
		withPairs(changes, func(list unsafe.Pointer, count uint32) { stateSet(list, count, into) })
	})
}

func (host) DeleteState(key string) error {
	return done(func(into unsafe.Pointer) { stateDelete(key, into) })
}

func (host) Params() (string, error) { return refusable(actionsParams, textOf) }

func (host) Param(path string) (string, bool, error) {
	value, err := refusable(func(into unsafe.Pointer) { actionsParam(path, into) }, optionalOf)
	return value.text, value.isThere, err
}

func (host) SetResults(results []contract.Pair) error {
	return done(func(into unsafe.Pointer) {
		withPairs(results, func(list unsafe.Pointer, count uint32) { actionsSetResults(list, count, into) })
	})
}

func (host) ActionLog(message string) error {
	return done(func(into unsafe.Pointer) { actionsLog(message, into) })
}

func (host) FailAction(message string) error {
	return done(func(into unsafe.Pointer) { actionsFail(some(message), message, into) })
}

func (host) Tool(name string, arguments []string) contract.ToolOutput {
	call := func(into unsafe.Pointer) {
		withTexts(arguments, func(list unsafe.Pointer, count uint32) {
			hookToolsRun(name, list, count, 0, nil, 0, into)
		})
	}
	return asked(call, func(a answer) contract.ToolOutput {
		return contract.ToolOutput{ExitCode: a.byte(0), Stdout: a.text(4), Stderr: a.text(12)}
	})
}

func (host) Resource(name string) (resource contract.Resource, err error) {
	asked(func(into unsafe.Pointer) { resourcesGet(name, into) }, func(a answer) struct{} {
		if err = a.refusalAt(8); err == nil {
			path, sha256 := a.text(8), a.text(32)
			resource = contract.Resource{Path: path, Revision: a.uint32(16), Size: a.uint64(24), SHA256: sha256}
		}
		return struct{}{}
	})
	return resource, err
}

// policy is a rotation policy's number; what is none is refused.
func policy(name string) (isThere, number uint32, err error) {
	if name == "" {
		return 0, 0, nil
	}
	number = uint32(slices.Index(contract.Policies, name))
	if int(number) >= len(contract.Policies) {
		return 0, 0, contract.Refuse(contract.InvalidArgument, "rotate policy \""+name+"\" not valid")
	}
	return 1, number, nil
}

func (host) AddSecret(owner contract.Owner, content []contract.Pair, said contract.Metadata) (string, error) {
	hasRotate, rotate, err := policy(said.Rotate)
	if err != nil {
		return "", err
	}
	return refusable(func(into unsafe.Pointer) {
		withPairs(content, func(list unsafe.Pointer, count uint32) {
			secretsAdd(uint32(owner), list, count, some(said.Label), said.Label, some(said.Description), said.Description,
				hasRotate, rotate, some(said.Expire), said.Expire, into)
		})
	}, textOf)
}

func (host) SetSecret(uri string, content []contract.Pair, said contract.Metadata) error {
	hasRotate, rotate, err := policy(said.Rotate)
	if err != nil {
		return err
	}
	hasContent := uint32(0)
	if content != nil {
		hasContent = 1
	}
	return done(func(into unsafe.Pointer) {
		withPairs(content, func(list unsafe.Pointer, count uint32) {
			secretsSet(uri, hasContent, list, count, some(said.Label), said.Label, some(said.Description),
				said.Description, hasRotate, rotate, some(said.Expire), said.Expire, into)
		})
	})
}

func (host) Secret(uri, label string, mode contract.Mode) ([]contract.Pair, error) {
	return refusable(func(into unsafe.Pointer) {
		secretsGet(some(uri), uri, some(label), label, uint32(mode), into)
	}, pairsOf)
}

func (host) Secrets() ([]string, error) { return refusable(secretsIDs, textsOf) }

func (host) GrantSecret(uri string, relation uint32, unit string) error {
	return done(func(into unsafe.Pointer) { secretsGrant(uri, relation, some(unit), unit, into) })
}

func (host) RevokeSecret(uri, reader string) error {
	return done(func(into unsafe.Pointer) { secretsRevoke(uri, reader, into) })
}

func (host) RemoveSecret(uri string) error {
	return done(func(into unsafe.Pointer) { secretsRemove(uri, 0, 0, into) })
}
