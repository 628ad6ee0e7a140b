// The operator's settings.

import { type Unit, blocked } from "@periapt/charm";

export interface Settings {
  port: number;
  balance: string;
}

const BALANCES = ["roundrobin", "leastconn", "source"];

/** Returns the options. An invalid value blocks the unit, with a message that says which values are valid. */
export function settingsOf(unit: Unit): Settings {
  const { port, balance } = unit.config as { port: number; balance: string };
  if (port < 1 || port > 65535) throw blocked(`option port is ${port}, expected 1 to 65535`);
  if (!BALANCES.includes(balance)) throw blocked(`option balance is "${balance}", expected ${BALANCES.join(", ")}`);
  return { port, balance };
}
