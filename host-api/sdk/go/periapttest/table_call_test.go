package periapttest

import (
	"encoding/json"
	"strings"

	"periapt/internal/contract"
)

// call makes a call by the name of its function and with arguments as the journal writes them, and answers so; false: there is no
// word for it.
func call(host contract.Host, function string, with []any) (any, bool) {
	text := func(at int) string { said, _ := with[at].(string); return said }
	relation := func() uint32 { return uint32(with[0].(float64)) }
	var err error
	var value any
	switch function {
	case "config.get":
		return optionOf(host.Config(text(0))), true
	case "relations.ids":
		return asJSON(append([]uint32{}, host.Relations(text(0))...)), true
	case "state.get":
		return optional(host.State(text(0))), true
	case "state.get-all":
		return object(host.AllState()), true
	case "ports.opened":
		return ports(host.OpenedPorts()), true
	case "relations.remote-application":
		value, err = host.RemoteApp(relation())
	case "relations.members":
		value, err = host.Members(relation())
	case "relations.get":
		var pairs []contract.Pair
		pairs, err = host.Bag(relation(), bagOf(with[1]))
		value = object(pairs)
	case "relations.get-value":
		var said string
		var isThere bool
		said, isThere, err = host.BagValue(relation(), bagOf(with[1]), text(2))
		value = optional(said, isThere)
	case "relations.set":
		err = host.SetBag(relation(), map[string]contract.OwnBag{"unit": contract.UnitBag, "application": contract.AppBag}[text(1)], pairs(with[2]))
	case "ports.open":
		err = host.OpenPorts(portsOf(with[0]), texts(with[1]))
	case "ports.close":
		err = host.ClosePorts(portsOf(with[0]), texts(with[1]))
	case "status.set":
		err = host.SetStatus(workload(text(0)), text(1))
	case "status.set-application":
		err = host.SetAppStatus(workload(text(0)), text(1))
	case "status.set-application-version":
		err = host.SetVersion(text(0))
	case "leadership.is-leader":
		value, err = host.IsLeader()
	case "state.set":
		err = host.SetState(pairs(with[0]))
	case "state.delete":
		err = host.DeleteState(text(0))
	case "identity.private-address":
		value, err = host.PrivateAddress()
	case "log.write":
		host.Log(contract.Info, text(1))
	case "resources.get":
		var file contract.Resource
		file, err = host.Resource(text(0))
		value = map[string]any{"path": file.Path, "revision": file.Revision, "size": file.Size, "digest": file.SHA256}
	default:
		if strings.HasPrefix(function, "actions.") {
			return action(host, function, with)
		}
		return secrets(host, function, with)
	}
	return told(value, err), true
}

func action(host contract.Host, function string, with []any) (any, bool) {
	text := func() string { said, _ := with[0].(string); return said }
	var err error
	var value any
	switch function {
	case "actions.params":
		var said string
		said, err = host.Params()
		value = json.RawMessage(said)
	case "actions.param":
		var said string
		var isThere bool
		if said, isThere, err = host.Param(text()); isThere {
			value = json.RawMessage(said)
		}
	case "actions.set-results":
		err = host.SetResults(pairs(with[0]))
	case "actions.log":
		err = host.ActionLog(text())
	case "actions.fail":
		err = host.FailAction(text())
	}
	return told(value, err), true
}

func secrets(host contract.Host, function string, with []any) (any, bool) {
	text := func(at int) string { said, _ := with[at].(string); return said }
	said := func(at int) (said contract.Metadata) {
		err := json.Unmarshal([]byte(asText(with[at])), &said)
		if err != nil {
			panic(err)
		}
		return said
	}
	var err error
	var value any
	switch function {
	case "secrets.add":
		owner := map[string]contract.Owner{"unit": contract.UnitOwned, "application": contract.AppOwned}[text(0)]
		value, err = host.AddSecret(owner, pairs(with[1]), said(2))
	case "secrets.set":
		err = host.SetSecret(text(0), pairs(with[1]), said(2))
	case "secrets.get":
		modes := map[string]contract.Mode{"tracked": contract.Tracked, "peek": contract.Peek, "refresh": contract.Refresh}
		var content []contract.Pair
		content, err = host.Secret(text(0), text(1), modes[text(2)])
		var shown [][2]string
		for _, pair := range content {
			shown = append(shown, [2]string{pair.Key, pair.Value})
		}
		value = shown
	case "secrets.ids":
		value, err = host.Secrets()
	case "secrets.grant":
		err = host.GrantSecret(text(0), uint32(with[1].(float64)), text(2))
	case "secrets.revoke":
		err = host.RevokeSecret(text(0), text(1))
	case "secrets.remove":
		if with[1] != nil {
			return nil, false
		}
		err = host.RemoveSecret(text(0))
	default:
		return nil, false
	}
	return told(value, err), true
}

// told is an answer as the journal writes it.
func told(value any, err error) any {
	if err == nil {
		return asJSON(map[string]any{"Ok": value})
	}
	refused := err.(*contract.Error)
	return asJSON(map[string]any{"Err": map[string]any{string(refused.Code): refused.Reason}})
}

func asText(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func asJSON(value any) (again any) {
	if err := json.Unmarshal([]byte(asText(value)), &again); err != nil {
		panic(err)
	}
	return again
}

func optional(said string, isThere bool) any {
	if !isThere {
		return nil
	}
	return said
}

func optionOf(value contract.Value, isThere bool) any {
	if !isThere {
		return nil
	}
	kind := map[bool]string{true: "text"}
	switch value.(type) {
	case int64:
		kind[true] = "integer"
	case float64:
		kind[true] = "number"
	}
	return asJSON(map[string]any{kind[true]: value})
}

func object(pairs []contract.Pair) any {
	all := map[string]any{}
	for _, pair := range pairs {
		all[pair.Key] = pair.Value
	}
	return all
}

func ports(all []contract.OpenedPorts) any {
	shown := []any{}
	for _, each := range all {
		endpoints := append([]string{}, each.Endpoints...)
		shown = append(shown, map[string]any{"range": contract.PortsText(each.Ports), "endpoints": endpoints})
	}
	return asJSON(shown)
}

func portsOf(value any) contract.Ports {
	if value == "icmp" {
		return contract.Ports{Protocol: contract.ICMP}
	}
	protocol, bounds := contract.TCP, value.(map[string]any)["tcp"]
	if bounds == nil {
		protocol, bounds = contract.UDP, value.(map[string]any)["udp"]
	}
	range_ := bounds.([]any)
	return contract.Ports{Protocol: protocol, First: uint16(range_[0].(float64)), Last: uint16(range_[1].(float64))}
}

func bagOf(value any) contract.Bag {
	named := value.(map[string]any)
	if unit, isUnit := named["unit"]; isUnit {
		return contract.Bag{Owner: unit.(string)}
	}
	return contract.Bag{Owner: named["application"].(string), IsApp: true}
}

func pairs(value any) []contract.Pair {
	if value == nil {
		return nil
	}
	all := []contract.Pair{}
	for _, each := range value.([]any) {
		all = append(all, contract.Pair{Key: each.([]any)[0].(string), Value: each.([]any)[1].(string)})
	}
	return all
}

func texts(value any) []string {
	all := []string{}
	for _, each := range value.([]any) {
		all = append(all, each.(string))
	}
	return all
}

func workload(word string) contract.Workload {
	return map[string]contract.Workload{"maintenance": contract.Maintenance, "blocked": contract.Blocked,
		"waiting": contract.Waiting, "active": contract.Active}[word]
}
