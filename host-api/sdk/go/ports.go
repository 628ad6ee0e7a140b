package periapt

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"periapt/internal/contract"
)

// OpenPorts opens ports as people write them (80/tcp, 8000-8999/udp, icmp) for some endpoints, or for all if none is named.
func (u *Unit) OpenPorts(ports string, endpoints ...string) error {
	wanted, err := ParsePorts(ports)
	if err != nil {
		return err
	}
	return contract.About("opening ports", u.host.OpenPorts(wanted, endpoints))
}

// ClosePorts closes them.
func (u *Unit) ClosePorts(ports string, endpoints ...string) error {
	wanted, err := ParsePorts(ports)
	if err != nil {
		return err
	}
	return contract.About("closing ports", u.host.ClosePorts(wanted, endpoints))
}

// OpenedPorts are open, for all endpoints or for some.
func (u *Unit) OpenedPorts() []string {
	var all []string
	for _, opened := range u.host.OpenedPorts() {
		all = append(all, contract.PortsText(opened.Ports))
	}
	return all
}

// SetPorts closes all ports but these, and opens these.
func (u *Unit) SetPorts(wanted ...string) error {
	var names []string
	for _, each := range wanted {
		ports, err := ParsePorts(each)
		if err != nil {
			return err
		}
		names = append(names, contract.PortsText(ports))
	}
	for _, opened := range u.host.OpenedPorts() {
		if slices.Contains(names, contract.PortsText(opened.Ports)) && len(opened.Endpoints) == 0 {
			continue
		}
		if err := u.host.ClosePorts(opened.Ports, opened.Endpoints); err != nil {
			return contract.About("closing ports", err)
		}
	}
	for _, each := range names {
		if err := u.OpenPorts(each); err != nil {
			return err
		}
	}
	return nil
}

// Ports is a range of one protocol's.
type Ports = contract.Ports

// ParsePorts reads ports as people write them.
func ParsePorts(text string) (Ports, error) {
	none := contract.Ports{}
	if text == "icmp" {
		return contract.Ports{Protocol: contract.ICMP}, nil
	}
	ports := contract.Ports{Protocol: contract.TCP}
	numbers, protocol, isSaid := strings.Cut(text, "/")
	if isSaid && protocol == "udp" {
		ports.Protocol = contract.UDP
	} else if isSaid && protocol != "tcp" {
		return none, noPort(text)
	}
	first, last, isRange := strings.Cut(numbers, "-")
	if !isRange {
		last = first
	}
	for _, bound := range []struct {
		text string
		into *uint16
	}{{first, &ports.First}, {last, &ports.Last}} {
		number, err := strconv.ParseUint(bound.text, 10, 16)
		if errors.Is(err, strconv.ErrRange) {
			return none, fmt.Errorf("%s is no port: expected numbers up to 65535", text)
		}
		if err != nil {
			return none, noPort(text)
		}
		*bound.into = uint16(number)
	}
	return ports, nil
}

func noPort(text string) error {
	return fmt.Errorf("%s is no port: expected one such as 80, 8000-8999/udp or icmp", text)
}
