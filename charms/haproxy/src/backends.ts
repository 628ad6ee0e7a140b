// Who visitors can be sent to.

import type { Unit } from "@periapt/charm";

/** A unit of another application, and where it answers. */
export interface Backend {
  unit: string;
  hostname: string;
  port: number;
  drained: boolean;
}

/** All units that have said where they answer, in a fixed order. */
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

/** What another charm says is not to be trusted: it ends up in a configuration. */
function portOf(unit: string, text: string): number {
  const port = Number(text);
  if (!Number.isInteger(port) || port < 1 || port > 65535) throw new Error(`${unit} has port "${text}", expected 1 to 65535`);
  return port;
}
