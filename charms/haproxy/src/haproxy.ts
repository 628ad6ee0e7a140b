// The configuration of HAProxy.

import template from "./haproxy.cfg.template";
import type { Backend } from "./backends.ts";
import type { Settings } from "./settings.ts";

/** Returns the whole file. A drained unit stays in it, so that its open connections can finish. */
export function render(settings: Settings, backends: Backend[]): string {
  const head = template.replace("{port}", String(settings.port)).replace("{balance}", settings.balance);
  const servers = backends.map(({ unit, hostname, port, drained }) => {
    const name = unit.replace("/", "-");
    return `    server ${name} ${safe(hostname)}:${port} check${drained ? " disabled" : ""}\n`;
  });
  return head + servers.join("");
}

/** Checks that a text is a name or an address, and cannot add a line to the configuration. */
function safe(hostname: string): string {
  if (!/^[A-Za-z0-9.:_-]{1,253}$/.test(hostname)) throw new Error(`"${hostname}" is no host`);
  return hostname;
}

/** Returns a short hash of a content (FNV-1a), to detect changes. */
export function digest(text: string): string {
  let hash = 0x811c9dc5;
  for (const character of text) hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 0x01000193);
  return (hash >>> 0).toString(16).padStart(8, "0");
}
