#include "periapt_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host.h"

static struct {
  bool handled;
  const char *failure;
} last;

// Runs one event; what a hook that fails asked for is undone.
static bool run(exports_periapt_charm_handler_invocation_t invocation) {
  struct durable before = host.durable;
  host.action_failure = NULL;
  exports_periapt_charm_handler_outcome_t outcome = 0;
  exports_periapt_charm_handler_failure_t failure;
  invocation.attempt = 1;
  if (exports_periapt_charm_handler_handle(&invocation, &outcome, &failure)) {
    last.handled = outcome == PERIAPT_CHARM_TYPES_OUTCOME_HANDLED;
    last.failure = NULL;
    return true;
  }
  last.handled = true;
  last.failure = host_text(&failure.message);
  host.durable = before;
  return false;
}

bool pt_event(exports_periapt_charm_handler_invocation_t *invocation) { return run(*invocation); }

void pt_unit(const char *name) {
  memset(&host, 0, sizeof host);
  memset(&last, 0, sizeof last);
  host_check_unit(name);
  host.unit = name;
}

void pt_leader(bool leads) { host.leader = leads; }

static void option(const char *key, periapt_charm_config_value_t value) {
  if (host.option_count == HOST_MAX) abort();
  for (size_t i = 0; i < host.option_count; i++) {
    if (strcmp(host.options[i].key, key) != 0) continue;
    host.options[i].value = value;
    return;
  }
  host.options[host.option_count].key = key;
  host.options[host.option_count++].value = value;
}

void pt_config_text(const char *key, const char *value) {
  option(key, (periapt_charm_config_value_t){PERIAPT_CHARM_CONFIG_VALUE_TEXT, {.text = host_string(value)}});
}

void pt_config_integer(const char *key, int64_t value) {
  option(key, (periapt_charm_config_value_t){PERIAPT_CHARM_CONFIG_VALUE_INTEGER, {.integer = value}});
}

void pt_config_boolean(const char *key, bool value) {
  option(key, (periapt_charm_config_value_t){PERIAPT_CHARM_CONFIG_VALUE_BOOLEAN, {.boolean = value}});
}

uint32_t pt_relate(const char *endpoint, const char *app) {
  if (host.relation_count == HOST_MAX) abort();
  host.relations[host.relation_count] = (struct relation){endpoint, app, true, {NULL}, 0};
  return host.relation_count++;
}

void pt_remote(uint32_t relation, const char *owner, const char *key, const char *value) {
  const struct relation *there = host_open_relation(relation);
  if (strcmp(owner, there->app) != 0) host_check_remote(relation, owner);
  host_put(&host.durable.bags, host_bag(relation, owner), key, *value == '\0' ? NULL : value);
}

void pt_secret(const char *uri, const char *key, const char *value) { host_put(&host.secrets, uri, key, value); }

void pt_param(const char *path, const char *json) { host_put(&host.params, "", path, json); }

static const struct {
  const char *name;
  uint8_t tag;
} PLAIN[] = {
    {"install", PERIAPT_CHARM_TYPES_EVENT_INSTALL},
    {"start", PERIAPT_CHARM_TYPES_EVENT_START},
    {"stop", PERIAPT_CHARM_TYPES_EVENT_STOP},
    {"remove", PERIAPT_CHARM_TYPES_EVENT_REMOVE},
    {"config-changed", PERIAPT_CHARM_TYPES_EVENT_CONFIG_CHANGED},
    {"upgrade-charm", PERIAPT_CHARM_TYPES_EVENT_UPGRADE_CHARM},
    {"update-status", PERIAPT_CHARM_TYPES_EVENT_UPDATE_STATUS},
    {"leader-elected", PERIAPT_CHARM_TYPES_EVENT_LEADER_ELECTED},
};

bool pt_run(const char *hook) {
  for (size_t i = 0; i < sizeof PLAIN / sizeof *PLAIN; i++) {
    if (strcmp(PLAIN[i].name, hook) == 0) return run((exports_periapt_charm_handler_invocation_t){.event.tag = PLAIN[i].tag});
  }
  fprintf(stderr, "there is no hook %s that is about nothing\n", hook);
  abort();
}

bool pt_join(uint32_t id, const char *unit) {
  host_check_remote(id, unit);
  struct relation *relation = host_open_relation(id);
  if (!host_is_member(id, unit)) {
    if (relation->member_count == HOST_MAX) abort();
    relation->members[relation->member_count++] = unit;
  }
  exports_periapt_charm_handler_invocation_t it = {.event.tag = PERIAPT_CHARM_TYPES_EVENT_RELATION_JOINED};
  it.event.val.relation_joined = (periapt_charm_types_relation_joined_event_t){
      host_string(relation->endpoint), id, host_string(relation->app), host_string(unit)};
  return run(it);
}

bool pt_change(uint32_t id, const char *unit) {
  if (unit != NULL) host_check_member(id, unit);
  struct relation *relation = host_open_relation(id);
  exports_periapt_charm_handler_invocation_t it = {.event.tag = PERIAPT_CHARM_TYPES_EVENT_RELATION_CHANGED};
  it.event.val.relation_changed = (periapt_charm_types_relation_changed_event_t){
      host_string(relation->endpoint), id, host_string(relation->app), {unit != NULL, host_string(unit)}};
  return run(it);
}

bool pt_depart(uint32_t id, const char *unit) {
  host_check_member(id, unit);
  struct relation *relation = host_open_relation(id);
  for (size_t i = 0; i < relation->member_count; i++) {
    if (strcmp(relation->members[i], unit) != 0) continue;
    relation->members[i] = relation->members[--relation->member_count];
  }
  exports_periapt_charm_handler_invocation_t it = {.event.tag = PERIAPT_CHARM_TYPES_EVENT_RELATION_DEPARTED};
  it.event.val.relation_departed = (periapt_charm_types_relation_departed_event_t){
      host_string(relation->endpoint), id, host_string(relation->app), host_string(unit), host_string(unit)};
  return run(it);
}

bool pt_break(uint32_t id) {
  struct relation *relation = host_open_relation(id);
  relation->is_there = false;
  exports_periapt_charm_handler_invocation_t it = {.event.tag = PERIAPT_CHARM_TYPES_EVENT_RELATION_BROKEN};
  it.event.val.relation_broken =
      (periapt_charm_types_relation_event_t){host_string(relation->endpoint), id, host_string(relation->app)};
  return run(it);
}

bool pt_action(const char *name) {
  host.durable.results = (struct entries){0};
  exports_periapt_charm_handler_invocation_t it = {.event.tag = PERIAPT_CHARM_TYPES_EVENT_ACTION};
  it.event.val.action = (periapt_charm_types_action_event_t){host_string(name), host_string("1")};
  host.runs_action = true;
  bool succeeded = run(it);
  host.runs_action = false;
  host.params = (struct entries){0};
  return succeeded;
}

bool pt_handled(void) { return last.handled; }
const char *pt_failure(void) { return last.failure; }
const char *pt_status(void) { return host.status; }
const char *pt_version(void) { return host.version; }
const char *pt_logged(void) { return host.logged; }

bool pt_is_open(uint16_t port) {
  for (size_t i = 0; i < host.durable.port_count; i++) {
    const periapt_charm_ports_port_range_t *range = &host.durable.ports[i].val.tcp;
    if (host.durable.ports[i].tag == PERIAPT_CHARM_PORTS_PORTS_TCP && range->first <= port && port <= range->last) {
      return true;
    }
  }
  return false;
}

const char *pt_bag(uint32_t relation, const char *owner, const char *key) {
  return host_find(&host.durable.bags, host_bag(relation, owner), key);
}

const char *pt_stored(const char *key) { return host_find(&host.durable.state, "", key); }
const char *pt_result(const char *key) { return host_find(&host.durable.results, "", key); }
const char *pt_action_failure(void) { return host.action_failure; }

// --- Tests --------------------------------------------------------------------------------------------------------------

static struct {
  int run, failed;
  bool is_failed;
} tests;

void pt_test(const char *name, void (*test)(void)) {
  tests.is_failed = false;
  test();
  tests.run++;
  tests.failed += tests.is_failed;
  printf("%s %s\n", tests.is_failed ? "FAILED" : "ok", name);
}

void pt_expect(bool holds, const char *what, const char *file, int line) {
  if (holds) return;
  tests.is_failed = true;
  const char *failure = last.failure == NULL ? "" : last.failure;
  fprintf(stderr, "%s:%d: not so: %s%s%s\n", file, line, what, *failure ? "; the last hook failed: " : "", failure);
}

void pt_same(const char *text, const char *expected, const char *what, const char *file, int line) {
  bool is_same = text == expected || (text != NULL && expected != NULL && strcmp(text, expected) == 0);
  if (is_same) return;
  tests.is_failed = true;
  fprintf(stderr, "%s:%d: %s is \"%s\", expected \"%s\"\n", file, line, what, text == NULL ? "(nothing)" : text,
          expected == NULL ? "(nothing)" : expected);
}

int pt_end(void) {
  printf("%d tests, %d failed\n", tests.run, tests.failed);
  return tests.failed == 0 && tests.run > 0 ? 0 : 1;
}
