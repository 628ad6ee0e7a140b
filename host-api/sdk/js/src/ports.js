import { ports as host } from "#host";
import { ask } from "./error.js";

/**
 * Ports from what people write: 80, "80", "80/tcp", "8000-8999/udp", "icmp".
 * @returns {import("periapt:charm/ports@0.1.0").Ports}
 */
export function parsed(given) {
  const text = String(given);
  if (text === "icmp") return { tag: "icmp" };
  const [, first, last, protocol] = /^(\d{1,5})(?:-(\d{1,5}))?(?:\/(tcp|udp))?$/.exec(text) ?? [];
  if (first === undefined) throw new Error(`${text} is no port: expected one such as 80, 8000-8999/udp or icmp`);
  const range = { first: Number(first), last: Number(last ?? first) };
  if (range.first > 65535 || range.last > 65535) throw new Error(`${text} is no port: expected numbers up to 65535`);
  return { tag: protocol === "udp" ? "udp" : "tcp", val: range };
}

/** As hook tools show them: `80/tcp`. @param {import("periapt:charm/ports@0.1.0").Ports} ports */
export function shown(ports) {
  if (ports.tag === "icmp") return "icmp";
  const { tag, val } = ports;
  return val.first === val.last ? `${val.first}/${tag}` : `${val.first}-${val.last}/${tag}`;
}

export function open(given, endpoints = []) {
  ask("opening ports", () => host.open(parsed(given), endpoints));
}

export function close(given, endpoints = []) {
  ask("closing ports", () => host.close(parsed(given), endpoints));
}

export function opened() {
  return host.opened().map(({ ports, endpoints }) => ({ ports: shown(ports), endpoints }));
}

/** Closes what is open and not wanted, and opens what is wanted. */
export function converge(wanted) {
  const names = wanted.map((each) => shown(parsed(each)));
  for (const { ports, endpoints } of opened()) {
    if (!names.includes(ports) || endpoints.length > 0) close(ports, endpoints);
  }
  for (const name of names) open(name);
}
