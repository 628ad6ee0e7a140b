// Runs a web server through the Pebble of its container, and tells of files and commands there.
import { PebbleError, active, on, waiting } from "@periapt/charm";

on(["config-changed", "pebble-ready"], (unit) => {
  const { directory, port } = unit.config;
  const web = unit.container("web");
  if (!web.canConnect) throw waiting("the container has not started");
  web.push(`${directory}/page.txt`, `hello of ${unit.name}`);
  const command = `python3 -m http.server ${port} --bind 127.0.0.1 --directory ${directory}`;
  const checks = { page: { override: "replace", exec: { command: "sleep 0" } } };
  web.addLayer("charm", { services: { web: { override: "replace", command, startup: "enabled" } }, checks });
  web.replan();
  unit.status = active(web.service("web").current);
});

/** The kind of what a call fails with. */
function kindOf(call) {
  try {
    call();
    return "nothing";
  } catch (error) {
    return error instanceof PebbleError ? error.kind : String(error);
  }
}

on("drive-action", (unit, action) => {
  const { directory, port } = unit.config;
  const web = unit.container("web");
  web.makeDirectory(`${directory}/sub`);
  const names = web.listFiles(directory).map(({ name }) => name).join(" ");
  web.removePath(`${directory}/sub`);
  const { stdout } = web.exec(["tr", "a-z", "A-Z"], { stdin: "hello ".repeat(100_000) });
  // It ends and has read nothing.
  const failed = web.exec(["sh", "-c", "echo bad >&2; exit 3"], { stdin: "hello ".repeat(100_000) });
  action.setResults({
    page: unit.workloadPage(port, "/page.txt").text,
    pulled: web.pullText(`${directory}/page.txt`),
    names,
    gone: String(!web.exists(`${directory}/sub`)),
    kind: kindOf(() => web.pull("/none")),
    shouted: `${stdout.length} ${String.fromCharCode(...stdout.slice(0, 5))}`,
    failed: `${failed.code} ${String.fromCharCode(...failed.stderr)}`,
    late: kindOf(() => web.exec(["sleep", "60"], { timeout: 500 })),
    checks: [web.stopChecks("page"), web.stopChecks("page"), web.startChecks("page")].map(String).join(","),
    notice: web.notice(web.notify("example.com/done", { of: unit.name })).data.of,
  });
});
