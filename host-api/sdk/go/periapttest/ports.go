package periapttest

import (
	"fmt"
	"slices"

	"periapt/internal/contract"
)

func (h *host) OpenPorts(ports contract.Ports, endpoints []string) error {
	if err := h.checkPorts("open", ports); err != nil {
		return err
	}
	if h.placeOf(ports, endpoints) < 0 {
		h.unit.durable.ports = append(h.unit.durable.ports, contract.OpenedPorts{Ports: ports, Endpoints: endpoints})
	}
	return nil
}

func (h *host) ClosePorts(ports contract.Ports, endpoints []string) error {
	if err := h.checkPorts("close", ports); err != nil {
		return err
	}
	if place := h.placeOf(ports, endpoints); place >= 0 {
		h.unit.durable.ports = slices.Delete(h.unit.durable.ports, place, place+1)
	}
	return nil
}

func (h *host) OpenedPorts() []contract.OpenedPorts { return slices.Clone(h.unit.durable.ports) }

func (h *host) placeOf(ports contract.Ports, endpoints []string) int {
	return slices.IndexFunc(h.unit.durable.ports, func(open contract.OpenedPorts) bool {
		return open.Ports == ports && slices.Equal(open.Endpoints, endpoints)
	})
}

// checkPorts refuses a range that is none, and one that shares a port with another of the unit.
func (h *host) checkPorts(verb string, ports contract.Ports) error {
	if ports.Protocol == contract.ICMP {
		return nil
	}
	name := contract.PortsText(ports)
	if ports.First > ports.Last || ports.First == 0 {
		return contract.Refuse(contract.InvalidArgument, "invalid port range "+name)
	}
	for _, open := range h.unit.durable.ports {
		other := open.Ports
		isOther := other != ports && other.Protocol == ports.Protocol
		if isOther && other.First <= ports.Last && ports.First <= other.Last {
			return contract.Refuse(contract.Conflict, fmt.Sprintf("cannot %s %s (unit %q): port range conflicts with %s (unit %q)",
				verb, name, h.unit.name, contract.PortsText(other), h.unit.name))
		}
	}
	return nil
}
