package contract

import "strconv"

// PortsText is how hook tools show ports: 80/tcp.
func PortsText(ports Ports) string {
	if ports.Protocol == ICMP {
		return "icmp"
	}
	text := strconv.Itoa(int(ports.First))
	if ports.First != ports.Last {
		text += "-" + strconv.Itoa(int(ports.Last))
	}
	return text + []string{"/tcp", "/udp"}[ports.Protocol]
}
