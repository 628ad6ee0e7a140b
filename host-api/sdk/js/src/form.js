// Forms with files, as Pebble sends and takes them.
import { find, joined, latin } from "./incoming.js";
import { encode } from "./utf8.js";

/** The boundary between the parts of an upload. */
const BOUNDARY = "periapt-sdk-form-boundary";

/** The form of an order and a file; undefined if the file contains the boundary. */
export function upload(order, path, content) {
  if (find(content, BOUNDARY) >= 0) return undefined;
  const part = (name, more) => `--${BOUNDARY}\r\nContent-Disposition: form-data; name="${name}"${more}\r\n\r\n`;
  const request = part("request", "\r\nContent-Type: application/json");
  const head = `${request}${JSON.stringify(order)}\r\n${part("files", `; filename="${path}"`)}`;
  const body = joined([encode(head), content, encode(`\r\n--${BOUNDARY}--\r\n`)]);
  return { kind: `multipart/form-data; boundary=${BOUNDARY}`, body };
}

/** The boundary of a form, if a type is one. @param {string} kind */
export const boundaryOf = (kind) => /^multipart\/form-data\s*;.*?boundary="?([^";\s]+)"?/.exec(kind)?.[1];

/** The contents of a form's parts, by name; undefined if it is cut off. @param {Uint8Array} form */
export function parts(form, boundary) {
  const mark = `\r\n--${boundary}`;
  if (find(form, mark.slice(2)) !== 0) return undefined;
  const found = new Map();
  for (let rest = form.subarray(mark.length - 2); find(rest.subarray(0, 2), "--") !== 0; ) {
    const head = find(rest, "\r\n\r\n");
    const content = head < 0 ? -1 : find(rest, mark, head + 4);
    if (content < 0) return undefined;
    const name = /; name="([^"]*)"/.exec(latin(rest.subarray(0, head)))?.[1] ?? "";
    if (!found.has(name)) found.set(name, rest.slice(head + 4, content));
    rest = rest.subarray(content + mark.length);
    if (rest.length < 2) return undefined;
  }
  return found;
}
