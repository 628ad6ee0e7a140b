import { log as host } from "#host";

/** @param {import("periapt:charm/log@0.1.0").Level} level @returns {(...values: unknown[]) => void} */
const writer = (level) => (...values) => host.write(level, values.map(shown).join(" "));

/** The unit's log: what is written is seen at once, and stays if the hook fails. */
export const log = {
  trace: writer("trace"),
  debug: writer("debug"),
  info: writer("info"),
  warning: writer("warning"),
  error: writer("error"),
};

/** A value as `console.log` would show it, more or less: texts as they are, errors by name and message, the rest as JSON. */
export function shown(value) {
  if (typeof value === "string") return value;
  if (value instanceof Error) return `${value.name}: ${value.message}`;
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return String(value);
  }
}
