import * as host from "#host";
import { decode, encode } from "./utf8.js";

const { files } = host;

/**
 * The content of a file: of storage, of a resource, of the charm's own directory, or of /tmp.
 * @param {string} path
 * @returns {Uint8Array}
 */
export const readFile = (path) => files.read(path);

/**
 * The same, as text.
 * @param {string} path
 */
export const readText = (path) => decode(files.read(path));

/**
 * Writes a file, or puts it in another's place. What is written to storage stays, also if the hook fails; /tmp lasts as long as
 * the hook.
 * @param {string} path
 * @param {string | Uint8Array} content
 */
export const writeFile = (path, content) => files.write(path, typeof content === "string" ? encode(content) : content);

/**
 * The names in a directory.
 * @param {string} path
 * @returns {string[]}
 */
export const listFiles = (path) => files.list(path);

/** @param {string} path */
export const removeFile = (path) => files.remove(path);

/** @param {string} path */
export const makeDirectory = (path) => files.makeDirectory(path);
