// Files in the sandbox, by the directories that WASI has opened for the hook: storage, resources, the charm's own files, /tmp.
import { getDirectories } from "wasi:filesystem/preopens@0.2.12";

/** How much is read and written at once. */
const CHUNK = 65536;

/** The directories that are open, asked for once a hook: each answer would be handles of its own. */
let directories;

/** The opened directory that a path lies in, and the rest of the path. The innermost one counts: /tmp before /. */
function located(path) {
  const inside = (at) => path === at || path.startsWith(at.endsWith("/") ? at : `${at}/`);
  directories ??= getDirectories();
  const found = directories.filter(([, at]) => inside(at));
  if (found.length === 0) throw "no-entry";
  const [directory, at] = found.reduce((one, other) => (other[1].length > one[1].length ? other : one));
  return [directory, path.slice(at.length).replace(/^\/+/, "") || "."];
}

function opened(path, how, flags) {
  const [directory, rest] = located(path);
  return directory.openAt({ symlinkFollow: true }, rest, how, flags);
}

/** Lets go of what was opened once it was used: a hook has a bounded number of handles. */
function using(handle, use) {
  try {
    return use(handle);
  } finally {
    handle[Symbol.dispose]();
  }
}

/** What a call answers; what it refuses is told as an error with WASI's word for it. */
function asked(what, path, call) {
  try {
    return call();
  } catch (error) {
    const code = error?.payload ?? error;
    throw new Error(`cannot ${what} ${path}: ${typeof code === "string" ? code : (error.message ?? String(error))}`);
  }
}

/** @returns {Uint8Array} */
export function read(path) {
  const chunks = [];
  let length = 0;
  asked("read", path, () =>
    using(opened(path, {}, { read: true }), (file) => {
      for (let end = false; !end; ) {
        const [bytes, last] = file.read(CHUNK, length);
        chunks.push(bytes);
        length += bytes.length;
        end = last || bytes.length === 0;
      }
    }),
  );
  const whole = new Uint8Array(length);
  let at = 0;
  for (const bytes of chunks) {
    whole.set(bytes, at);
    at += bytes.length;
  }
  return whole;
}

export function write(path, bytes) {
  asked("write", path, () =>
    using(opened(path, { create: true, truncate: true }, { write: true }), (file) => {
      for (let at = 0; at < bytes.length; ) at += file.write(bytes.subarray(at, at + CHUNK), at);
    }),
  );
}

/** @returns {string[]} */
export function list(path) {
  return asked("list", path, () =>
    using(opened(path, { directory: true }, { read: true }), (directory) =>
      using(directory.readDirectory(), (entries) => {
        const names = [];
        for (;;) {
          const entry = entries.readDirectoryEntry();
          if (entry === undefined || entry === null) return names.sort();
          names.push(entry.name);
        }
      }),
    ),
  );
}

export function remove(path) {
  asked("remove", path, () => {
    const [directory, rest] = located(path);
    directory.unlinkFileAt(rest);
  });
}

export function makeDirectory(path) {
  asked("make", path, () => {
    const [directory, rest] = located(path);
    directory.createDirectoryAt(rest);
  });
}
