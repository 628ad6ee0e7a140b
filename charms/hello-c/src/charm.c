// A charm that greets each related unit, and reports the greetings that it gets.

#include <inttypes.h>
#include <periapt.h>

#include "greeting.h"

static void install(const periapt_event *event) {
  (void)event;
  periapt_status(PERIAPT_MAINTENANCE, "learning to speak");
}

// Opens the configured port, and greets every relation again.
static void configure(const periapt_event *event) {
  (void)event;
  int64_t port = periapt_config_integer("port", 7777);
  const char *words = greeting();
  if (words == NULL) return;
  periapt_only_tcp(port);
  periapt_ids relations = periapt_relations("greeting");
  for (size_t i = 0; i < relations.count; i++) periapt_set(relations.items[i], "greeting", "%s!", words);
  periapt_status(PERIAPT_ACTIVE, "says \"%s\" on port %" PRId64, words, port);
}

// Greets one unit in this unit's bag of the relation.
static void answer(const periapt_event *event) {
  if (event->unit == NULL) return;
  const char *words = greeting_for(event->relation, event->unit);
  if (words != NULL) periapt_set(event->relation, "greeting", "%s", words);
}

// Reports the greeting of another charm's unit.
static void hear(const periapt_event *event) {
  const char *heard = event->unit == NULL ? NULL : periapt_get(event->relation, event->unit, "greeting");
  if (heard == NULL) return;
  const char *message = periapt_text("heard from %s: %s", event->unit, heard);
  periapt_log(PERIAPT_INFO, "%s", message);
  periapt_status(PERIAPT_ACTIVE, "%s", message);
}

// Greets the person that the operator names, and counts the greetings.
static void greet(const periapt_event *event) {
  (void)event;
  const char *whom = periapt_param_text("whom");
  const char *words = greeting();
  if (whom == NULL || words == NULL) return;
  if (*whom == '\0') {
    periapt_action_fail("nobody was named");
    return;
  }
  int times = count_greeting();
  periapt_action_log("greeting %s", whom);
  periapt_result("greeting", "%s, %s!", words, whom);
  periapt_result("times", "%d", times);
}

const periapt_handler periapt_handlers[] = {
    {"install", install},
    {"config-changed", configure},
    {"greeting-relation-joined", answer},
    {"greeting-relation-changed", answer},
    {"hears-relation-changed", hear},
    {"greet-action", greet},
    {NULL, NULL},
};
