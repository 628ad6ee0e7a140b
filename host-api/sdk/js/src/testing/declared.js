// What a charm declares, as far as a harness has to know it: names, read from a `charmcraft.yaml` of the usual style, in which
// each name has a line of its own. Where a list hides them (`provides: {db: mysql}`) they are unknown: undefined.

/** The keys right below a path of keys. */
function names(text, ...path) {
  const found = new Set();
  // Keys that lead to the present line, each with its indentation.
  const above = [];
  for (const line of text.split("\n")) {
    const rest = line.trimStart();
    const colon = rest.indexOf(":");
    if (rest === "" || rest.startsWith("#")) continue;
    const indent = line.length - rest.length;
    while (above.length > 0 && above.at(-1).indent >= indent) above.pop();
    if (colon < 0) continue;
    const key = rest.slice(0, colon).replace(/^["']+|["']+$/g, "");
    const here = above.map((each) => each.key);
    if (here.join("\n") === path.join("\n")) found.add(key);
    if ([...here, key].join("\n") === path.join("\n") && rest.slice(colon + 1).trimStart().startsWith("{")) return undefined;
    above.push({ indent, key });
  }
  return found;
}

export function declaredBy(charmcraft) {
  const roles = ["provides", "requires", "peers"].map((role) => names(charmcraft, role));
  const endpoints = roles.includes(undefined) ? undefined : new Set([...roles.flatMap((role) => [...role]), "juju-info"]);
  return {
    options: names(charmcraft, "config", "options"),
    endpoints,
    peers: endpoints && roles[2],
    storage: names(charmcraft, "storage"),
    resources: names(charmcraft, "resources"),
    actions: names(charmcraft, "actions"),
  };
}
