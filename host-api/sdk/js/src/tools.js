import { hookTools } from "#host";
import { decode, encode } from "./utf8.js";

/**
 * Runs one of Juju's hook tools, such as `tool("config-get", ["--format=json", "port"])`.
 * @param {string} name
 * @param {string[]} [args]
 * @param {string} [stdin]
 */
export function tool(name, args = [], stdin) {
  const input = stdin === undefined ? null : encode(stdin);
  const { exitCode, stdout, stderr } = hookTools.run(name, args, input);
  return { code: exitCode, stdout: decode(stdout), stderr: decode(stderr) };
}
