// Builds the component of a charm in JavaScript or TypeScript; run by `periapt pack`.
//
// usage: node build.mjs TOOLS SCRATCH CHARM ENTRY
//
// TOOLS has the packages, SCRATCH the SDK (sdk/) and the world (wit/), CHARM is the charm's directory, ENTRY its main file in
// it. Writes SCRATCH/charm.wasm, and keeps it in TOOLS/built: the engine's snapshot holds the time and the random numbers
// of its start, so another build of the same program would have other bytes.
import { createHash } from "node:crypto";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { builtinModules, createRequire } from "node:module";
import { dirname, join, relative, sep } from "node:path";

const [tools, scratch, charm, entry] = process.argv.slice(2);
const fromTools = createRequire(join(tools, "package.json"));
const esbuild = fromTools("esbuild");
const { componentize } = fromTools("componentize-qjs");

/** Ends with a message for the charm's author. */
function fail(text) {
  console.error(text);
  process.exit(1);
}

const HANDLES_NOTHING = "the charm handles nothing: it calls `on` of @periapt/charm for no event";
const WITHOUT_NODE = "charms run without Node.js; docs/languages.md says what there is";

/** Returns esbuild's message about an import, with the charm's own paths. */
function told(text) {
  const [, module] = /^Could not resolve "(?:node:)?([^"]+)"/.exec(text) ?? [];
  if (builtinModules.includes(module)) return `"${module}" is a module of Node.js: ${WITHOUT_NODE}`;
  return text.replace(`"${elsewhere}/src/index.js"`, '"@periapt/charm"');
}

/** Returns the SDK that the charm has installed, with which its tests ran, or else that of this `periapt`. */
function sdk() {
  try {
    const manifest = createRequire(join(charm, "package.json")).resolve("@periapt/charm/package.json");
    return dirname(realpathSync(manifest));
  } catch {
    return realpathSync(join(scratch, "sdk"));
  }
}

/** Bundles the charm, the SDK and all their imports into one module. */
async function bundle(sdkDirectory) {
  const module = (path) => JSON.stringify(path.split(sep).join("/"));
  try {
    return await esbuild.build({
      // First the SDK's globals (console, random numbers), which the charm may use while it loads.
      stdin: {
        contents: [
          `import ${module(join(sdkDirectory, "src/host/globals.js"))};`,
          `import ${module(`./${entry}`)};`,
          'import { handler } from "@periapt/charm";',
          `if (handler.events?.length === 0) throw new Error(${JSON.stringify(HANDLES_NOTHING)});`,
          "export { handler };",
        ].join("\n"),
        resolveDir: charm,
        sourcefile: "entry.js",
      },
      absWorkingDir: charm,
      outfile: join(charm, "charm.js"),
      write: false,
      bundle: true,
      format: "esm",
      target: "es2023",
      // A package's build for browsers needs the fewest APIs that QuickJS lacks.
      mainFields: ["module", "main"],
      conditions: ["periapt"],
      alias: { "@periapt/charm": sdkDirectory },
      external: ["periapt:*", "wasi:*"],
      loader: { ".txt": "text", ".tmpl": "text", ".template": "text" },
      sourcemap: "external",
      charset: "utf8",
      logLevel: "silent",
    });
  } catch (error) {
    const messages = error.errors?.map(({ location, text }) =>
      location ? `${location.file}:${location.line}:${location.column + 1}: ${told(text)}` : text,
    );
    return fail(messages?.join("\n") ?? String(error));
  }
}

const DIGITS = new Map([..."ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"].map((c, i) => [c, i]));

/** Decodes the numbers of one segment of a source map. */
function numbers(segment) {
  const found = [];
  for (let value = 0, shift = 0, i = 0; i < segment.length; i += 1) {
    const digit = DIGITS.get(segment[i]);
    value |= (digit & 31) << shift;
    shift += 5;
    if (digit & 32) continue;
    found.push(value & 1 ? -(value >> 1) : value >> 1);
    value = shift = 0;
  }
  return found;
}

/** Returns the source and line of each line of the bundle, for the stacks of exceptions. */
function lines(map) {
  const table = [];
  let source = 0;
  let line = 0;
  for (const generated of map.mappings.split(";")) {
    let first = null;
    for (const segment of generated.split(",").filter((text) => text !== "")) {
      const [, sourceStep, lineStep] = numbers(segment);
      if (sourceStep === undefined) continue;
      source += sourceStep;
      line += lineStep;
      first ??= [source, line + 1];
    }
    table.push(first);
  }
  return table;
}

const sdkDirectory = sdk();
// The SDK's path on this machine must not get into the bundle.
const elsewhere = relative(charm, sdkDirectory).split(sep).join("/");
const { outputFiles } = await bundle(sdkDirectory);
const [map, code] = ["charm.js.map", "charm.js"].map((name) => outputFiles.find(({ path }) => path.endsWith(name)).text);
const named = (text) => text.replaceAll(elsewhere, "@periapt/charm");
const { sources, mappings } = JSON.parse(map);
const places = { sources: sources.map(named), lines: lines({ mappings }) };
const program = `${named(code)}\nglobalThis.__periaptLines = ${JSON.stringify(places)};\n`;

/** Describes why a charm could not be loaded, from the engine's error: the first of the charm's own lines, and the message. */
function unloadable(text) {
  const [, host] = /unknown import: `periapt:charm\/([^`]+)` has not been defined/.exec(text) ?? [];
  if (host !== undefined) {
    const called = host.replace(/@[^#]*#/, ".");
    return `the charm asks the host for something (${called}) while it is loaded: only handlers are answered`;
  }
  const [, message, stack] = /Error: ([^\n]*)\n?([^]*)$/.exec(text) ?? [];
  if (message === undefined) return text;
  const frames = [...stack.matchAll(/charm\.js:(\d+)/g)].map(([, line]) => places.lines[Number(line) - 1]);
  const own = frames.find((frame) => frame && !places.sources[frame[0]].startsWith("@periapt/charm"));
  const place = own ? `${places.sources[own[0]]}:${own[1]}: ` : "";
  const isNodes = /^(process|require|Buffer|global|__dirname|__filename|setTimeout|fetch|module|exports) is not defined/;
  return `${message === HANDLES_NOTHING ? "" : place}${message}${isNodes.test(message) ? ` (${WITHOUT_NODE})` : ""}`;
}

/** The most components in the cache: an author's charms, with some of their versions. */
const KEPT = 32;

/** Makes a component of a program. */
async function component(program) {
  const jsPath = join(scratch, "bundle", "charm.js");
  mkdirSync(dirname(jsPath));
  writeFileSync(jsPath, program);
  try {
    const made = await componentize({
      witPath: join(scratch, "wit"),
      world: "javascript",
      sync: true,
      jsSource: program,
      jsPath,
      moduleRoot: dirname(jsPath),
    });
    return made.component;
  } catch (error) {
    return fail(unloadable(error.message ?? String(error)));
  }
}

/** Returns the digest of the component's inputs. The name of TOOLS contains the versions of the tools. */
function key(program) {
  const hash = createHash("sha256").update(program);
  for (const name of ["world.wit", "deps/charm.wit", "deps/filesystem.wit", "deps/random.wit"]) {
    hash.update(readFileSync(join(scratch, "wit", name)));
  }
  return hash.digest("hex");
}

const built = join(tools, "built");
mkdirSync(built, { recursive: true });
const kept = join(built, `${key(program)}.wasm`);
if (!existsSync(kept)) {
  // A temporary name until the file is complete.
  const unfinished = join(built, `${process.pid}.unfinished`);
  writeFileSync(unfinished, await component(program));
  renameSync(unfinished, kept);
}
copyFileSync(kept, join(scratch, "charm.wasm"));
const now = new Date();
utimesSync(kept, now, now);
const ages = readdirSync(built).map((name) => [join(built, name), statSync(join(built, name)).mtimeMs]);
for (const [path] of ages.sort(([, one], [, other]) => other - one).slice(KEPT)) rmSync(path, { force: true });
