/** Where a line of the packed charm comes from, as `periapt pack` wrote it down. */
const table = () => globalThis.__periaptLines;

/** An error's calls, innermost first, in the files that the author knows; none where the engine kept none. */
export function calls(error) {
  const stack = typeof error?.stack === "string" ? error.stack : "";
  const frames = stack.split("\n").map((line) => line.trim());
  return frames.filter((line) => line.startsWith("at ")).map(named);
}

/** One call, with the bundle's line told as that of the source. */
function named(frame) {
  return frame.replace(/\/?charm\.js:(\d+)(?::\d+)?/, (place, line) => {
    const found = table()?.lines[Number(line) - 1];
    return found ? `${table().sources[found[0]]}:${found[1]}` : place;
  });
}
