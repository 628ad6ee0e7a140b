// Runs a web server through the Pebble of its container, and tells of files and commands there.
#include <periapt.h>

static const char *path(const char *name) { return periapt_text("%s/%s", periapt_config_text("directory", ""), name); }

static void configure(const periapt_event *event) {
  (void)event;
  if (!periapt_pebble_can_connect("web")) {
    periapt_status(PERIAPT_WAITING, "the container has not started");
    return;
  }
  periapt_pebble_push("web", path("page.txt"), periapt_text("hello of %s", periapt_unit()));
  const char *layer = periapt_text("{services: {web: {override: replace, startup: enabled, command: "
                                   "python3 -m http.server %d --bind 127.0.0.1 --directory %s}}, "
                                   "checks: {page: {override: replace, exec: {command: sleep 0}}}}",
                                   (int)periapt_config_integer("port", 0), periapt_config_text("directory", ""));
  periapt_pebble_add_layer("web", "charm", layer);
  periapt_pebble_replan("web");
  periapt_status(PERIAPT_ACTIVE, "%s", periapt_pebble_service("web", "web"));
}

static void drive(const periapt_event *event) {
  (void)event;
  periapt_pebble_make_dir("web", path("sub"));
  periapt_texts names = periapt_pebble_list_files("web", path(""));
  for (size_t i = 0; i < names.count; i++) periapt_log(PERIAPT_INFO, "%s", names.items[i]);
  periapt_pebble_remove_path("web", path("sub"));
  if (names.count == 2) periapt_result("names", "%s %s", names.items[0], names.items[1]);
  periapt_result("gone", "%s", periapt_pebble_exists("web", path("sub")) ? "false" : "true");
  periapt_result("pulled", "%s", periapt_pebble_pull("web", path("page.txt")).data);
  periapt_page page = periapt_workload_page((uint16_t)periapt_config_integer("port", 0), "/page.txt");
  periapt_result("page", "%s", page.body.data);
  char input[600];
  for (size_t i = 0; i < sizeof input; i++) input[i] = "hello "[i % 6];
  const char *const shout[] = {"tr", "a-z", "A-Z", NULL}, *const bad[] = {"sh", "-c", "echo bad >&2; exit 3", NULL};
  periapt_output shouted = periapt_pebble_exec("web", shout, (periapt_bytes){input, sizeof input}, 20);
  periapt_result("shouted", "%zu %.5s", shouted.out.length, shouted.out.data);
  periapt_output failed = periapt_pebble_exec("web", bad, (periapt_bytes){input, sizeof input}, 0);
  periapt_result("failed", "%d %s", failed.code, failed.err.data);
  if (periapt_failed()) return;
  const char *stopped = periapt_pebble_stop_check("web", "page") ? "page" : "";
  const char *again = periapt_pebble_stop_check("web", "page") ? "page" : "";
  const char *begun = periapt_pebble_start_check("web", "page") ? "page" : "";
  periapt_result("checks", "%s,%s,%s", stopped, again, begun);
  const char *const sleep[] = {"sleep", "60", NULL};
  periapt_pebble_exec("web", sleep, (periapt_bytes){NULL, 0}, 1);
  const char *late = periapt_pebble_kind();
  periapt_forgive();
  periapt_result("late", "%s", late);
  periapt_pebble_pull("web", "/none");
  const char *kind = periapt_pebble_kind();
  periapt_forgive();
  periapt_result("kind", "%s", kind);
}

const periapt_handler periapt_handlers[] = {
    {"config-changed", configure},
    {"pebble-ready", configure},
    {"drive-action", drive},
    {NULL, NULL},
};
