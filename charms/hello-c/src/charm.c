// A charm that greets, written against Juju's hook tools alone.

#include <stdlib.h>
#include <string.h>

#include "bindings/hello.h"
#include "tools.h"

#define TOOL(...) tool((const char *const[]){__VA_ARGS__, NULL})
#define DONE(...) tool_done((const char *const[]){__VA_ARGS__, NULL})

static bool is(const hello_string_t *string, const char *expected) {
  return string->len == strlen(expected) && memcmp(string->ptr, expected, string->len) == 0;
}

static char *owned(const hello_string_t *string) {
  return text("%.*s", (int)string->len, (const char *)string->ptr);
}

// The option as text, or NULL after a failure.
static char *greeting(void) {
  char *json = TOOL("config-get", "--format=json", "greeting");
  char *value = json == NULL ? NULL : json_string(json);
  if (json != NULL && value == NULL) {
    tool_failure.code = 1;
    tool_failure.message = text("config-get: option greeting is %s, expected a string", json);
  }
  free(json);
  return value;
}

// Answers one unit in this unit's bag of the hook's relation.
static void answer(const hello_string_t *remote_unit) {
  char *unit = owned(remote_unit);
  char *name = TOOL("relation-get", "name", unit);
  char *greet = greeting();
  if (name != NULL && greet != NULL) {
    char *setting = text("greeting=%s, %s!", greet, *name == '\0' ? unit : name);
    DONE("relation-set", setting);
    free(setting);
  }
  free(greet);
  free(name);
  free(unit);
}

// Says what another charm's unit greeted this one with.
static void hear(const hello_string_t *remote_unit) {
  char *unit = owned(remote_unit);
  char *heard = TOOL("relation-get", "greeting", unit);
  if (heard != NULL && *heard != '\0') {
    char *message = text("heard from %s: %s", unit, heard);
    DONE("juju-log", "-l", "INFO", "--", message);
    DONE("status-set", "active", message);
    free(message);
  }
  free(heard);
  free(unit);
}

// Closes the ports that are open and not wanted, opens the one that is, and greets every relation anew.
static void configure(void) {
  char *port = TOOL("config-get", "port");
  char *greet = greeting();
  char *open = TOOL("opened-ports");
  if (port != NULL && greet != NULL && open != NULL) {
    char *wanted = text("%s/tcp", port);
    for (char *each = strtok(open, "\n"); each != NULL; each = strtok(NULL, "\n")) {
      if (strcmp(each, wanted) != 0) DONE("close-port", each);
    }
    DONE("open-port", wanted);
    char *ids = TOOL("relation-ids", "greeting");
    char *setting = text("greeting=%s!", greet);
    for (char *id = ids == NULL ? NULL : strtok(ids, "\n"); id != NULL; id = strtok(NULL, "\n")) {
      DONE("relation-set", "-r", id, setting);
    }
    char *message = text("says \"%s\" on port %s", greet, port);
    DONE("status-set", "active", message);
    free(message);
    free(setting);
    free(ids);
    free(wanted);
  }
  free(open);
  free(greet);
  free(port);
}

static periapt_charm_types_outcome_t react(const periapt_charm_types_event_t *event) {
  const periapt_charm_types_relation_joined_event_t *joined = &event->val.relation_joined;
  const periapt_charm_types_relation_changed_event_t *changed = &event->val.relation_changed;
  switch (event->tag) {
    case PERIAPT_CHARM_TYPES_EVENT_INSTALL:
      DONE("status-set", "maintenance", "learning to speak");
      break;
    case PERIAPT_CHARM_TYPES_EVENT_CONFIG_CHANGED:
      configure();
      break;
    case PERIAPT_CHARM_TYPES_EVENT_RELATION_JOINED:
      if (is(&joined->endpoint, "greeting")) answer(&joined->remote_unit);
      break;
    case PERIAPT_CHARM_TYPES_EVENT_RELATION_CHANGED:
      if (!changed->remote_unit.is_some) break;
      if (is(&changed->endpoint, "greeting")) answer(&changed->remote_unit.val);
      if (is(&changed->endpoint, "hears")) hear(&changed->remote_unit.val);
      break;
    default:
      return PERIAPT_CHARM_TYPES_OUTCOME_UNHANDLED;
  }
  return PERIAPT_CHARM_TYPES_OUTCOME_HANDLED;
}

bool exports_periapt_charm_handler_handle(exports_periapt_charm_handler_invocation_t *invocation,
                                          exports_periapt_charm_handler_outcome_t *outcome,
                                          exports_periapt_charm_handler_failure_t *failure) {
  tools_begin();
  *outcome = react(&invocation->event);
  exports_periapt_charm_handler_invocation_free(invocation);
  if (tool_failure.message == NULL) return true;
  failure->code = tool_failure.code;
  hello_string_dup(&failure->message, tool_failure.message);
  return false;
}
