// A charm that makes one call, in the plain world of the table of hook tools: compiled with the SDK for C and its harness.
//
//   driver LEADS HOOK UNIT MEMBERS SECRET FUNCTION [ARGUMENT]...
//
// prints the answer: one line, which begins with its kind.

#include <periapt.h>
#include <periapt_test.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
  bool now;
  const char *function;
  char **with;
} asked;

static uint32_t number(int index) { return (uint32_t)atoi(asked.with[index]); }

static bool is_asked(const char *function) { return strcmp(asked.function, function) == 0; }

static void text(const char *value) {
  if (periapt_failed()) return;
  if (value == NULL) printf("nothing\n");
  else printf("text %s\n", value);
}

static periapt_workload workload(const char *word) {
  static const char *const words[] = {"maintenance", "blocked", "waiting", "active"};
  for (int i = 0; i < 4; i++) {
    if (strcmp(words[i], word) == 0) return (periapt_workload)i;
  }
  abort();
}

static const char *read(bool is_app, const char *key) {
  return is_app ? periapt_get_app(number(0), asked.with[2], key) : periapt_get(number(0), asked.with[2], key);
}

static void write(void) {
  for (char **pair = asked.with + 2; pair[0] != NULL; pair += 2) {
    if (strcmp(asked.with[1], "unit") == 0) periapt_set(number(0), pair[0], "%s", pair[1]);
    else periapt_set_app(number(0), pair[0], "%s", pair[1]);
  }
}

static void ask(const periapt_event *event) {
  (void)event;
  if (!asked.now) return;
  char **with = asked.with;
  if (is_asked("config.text")) text(periapt_config_text(with[0], NULL));
  else if (is_asked("config.integer")) printf("number %lld\n", (long long)periapt_config_integer(with[0], -1));
  else if (is_asked("relations.ids")) {
    periapt_ids ids = periapt_relations(with[0]);
    printf("list");
    for (size_t i = 0; i < ids.count; i++) printf(" %u", (unsigned)ids.items[i]);
    printf("\n");
  } else if (is_asked("relations.members")) {
    periapt_texts units = periapt_members(number(0));
    printf("list");
    for (size_t i = 0; i < units.count; i++) printf(" %s", units.items[i]);
    printf("\n");
  } else if (is_asked("relations.remote-application")) text(periapt_remote_app(number(0)));
  else if (is_asked("relations.get-value")) text(read(strcmp(with[1], "application") == 0, with[3]));
  else if (is_asked("relations.set")) write();
  else if (is_asked("ports.open")) periapt_open_tcp(atoi(with[0]));
  else if (is_asked("ports.close")) periapt_close_tcp(atoi(with[0]));
  else if (is_asked("status.set")) periapt_status(workload(with[0]), "%s", with[1]);
  else if (is_asked("status.set-application")) periapt_app_status(workload(with[0]), "%s", with[1]);
  else if (is_asked("status.set-application-version")) periapt_version(with[0]);
  else if (is_asked("leadership.is-leader")) printf("%s\n", periapt_is_leader() ? "true" : "false");
  else if (is_asked("state.get")) text(periapt_state(with[0]));
  else if (is_asked("state.delete")) periapt_forget(with[0]);
  else if (is_asked("state.set")) {
    for (; with[0] != NULL; with += 2) periapt_keep(with[0], "%s", with[1]);
  } else if (is_asked("identity.private-address")) text(periapt_private_address());
  else if (is_asked("actions.param")) text(periapt_param_json(with[0]));
  else if (is_asked("actions.log")) periapt_action_log("%s", with[0]);
  else if (is_asked("actions.fail")) periapt_action_fail("%s", with[0]);
  else if (is_asked("actions.set-results")) {
    for (; with[0] != NULL; with += 2) periapt_result(with[0], "%s", with[1]);
  } else if (is_asked("secrets.tracked")) text(periapt_secret(with[0], "password"));
  else if (is_asked("secrets.refresh")) text(periapt_secret_refresh(with[0], "password"));
  else printf("there is no word for %s\n", asked.function);
  if (periapt_failed()) printf("refused %d %s\n", periapt_why(), periapt_failure());
}

const periapt_handler periapt_handlers[] = {{"*", ask}, {NULL, NULL}};

static void before(const char *function, char **with) {
  asked.now = true;
  asked.function = function;
  asked.with = with;
  // Its output is of no interest.
  pt_run("update-status");
  asked.now = false;
}

int main(int count, char **arguments) {
  if (count < 7) return 2;
  const char *leads = arguments[1], *hook = arguments[2], *unit = arguments[3];
  char *members = arguments[4];
  pt_unit("a/0");
  pt_leader(true);
  pt_config_text("title", "hello");
  pt_config_integer("size", 80);
  pt_relate("unused", "nobody");
  uint32_t db = pt_relate("db", "b"), ring = pt_relate("ring", "a");
  pt_remote(db, "b", "version", "8");
  pt_remote(ring, "a", "password", "p");
  pt_remote(db, "b/0", "host", "10.0.0.4");
  pt_remote(db, "b/0", "port", "3306");
  pt_remote(db, "b/1", "host", "10.0.0.5");
  pt_remote(ring, "a/1", "seed", "7");
  pt_join(ring, "a/1");
  for (char *name = strtok(members, ","); name != NULL; name = strtok(NULL, ",")) pt_join(db, name);
  pt_secret(arguments[5], "password", "theirs-1");
  before("relations.set", (char *[]){"1", "unit", "ingress-address", "10.0.0.9", NULL});
  before("relations.set", (char *[]){"1", "application", "database", "wp", NULL});
  before("state.set", (char *[]){"seen", "1", "done", "", NULL});
  pt_leader(strcmp(leads, "leads") == 0);
  bool is_about_unit = *unit != '\0';
  if (strcmp(hook, "departed") == 0) pt_depart(db, unit);
  if (strcmp(hook, "broken") == 0) pt_break(db);
  asked.now = true;
  asked.function = arguments[6];
  asked.with = arguments + 7;
  if (strcmp(hook, "joined") == 0) pt_join(db, unit);
  else if (strcmp(hook, "changed") == 0) pt_change(db, is_about_unit ? unit : NULL);
  else if (strcmp(hook, "action") == 0) {
    pt_param("level", "3");
    pt_param("target.dir", "\"/srv\"");
    pt_action("backup");
  } else pt_run("update-status");
  return 0;
}
