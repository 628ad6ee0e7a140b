// The backends of the load balancer.

import type { Unit } from "@periapt/charm";

/** A unit of another application, and the address at which it serves. */
export interface Backend {
  unit: string;
  hostname: string;
  port: number;
  drained: boolean;
}

/** Returns all units that have published an address, in a fixed order. */
export function backendsOf(unit: Unit): Backend[] {
  return unit.relations("backends").flatMap((relation) =>
    relation.units.flatMap((name) => {
      const { hostname, port } = relation.bagOf(name).all();
      if (hostname === undefined || port === undefined) return [];
      const drained = unit.state.get(`drained ${name}`) !== undefined;
      return [{ unit: name, hostname, port: portOf(name, port), drained }];
    }),
  );
}

/** Checks data of another charm, which is untrusted and becomes part of a configuration. */
function portOf(unit: string, text: string): number {
  const port = Number(text);
  if (!Number.isInteger(port) || port < 1 || port > 65535) throw new Error(`${unit} has port "${text}", expected 1 to 65535`);
  return port;
}
