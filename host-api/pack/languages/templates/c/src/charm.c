// {name}: sets its greeting as its status.

#include <periapt.h>

// Returns the greeting; NULL after a failure, or if it is empty: the unit is then blocked.
static const char *greeting(void) {
  const char *words = periapt_config_text("greeting", "");
  if (words == NULL || *words != '\0') return words;
  periapt_status(PERIAPT_BLOCKED, "option greeting is empty");
  return NULL;
}

static void configure(const periapt_event *event) {
  (void)event;
  const char *words = greeting();
  if (words != NULL) periapt_status(PERIAPT_ACTIVE, "says %s", words);
}

static void greet(const periapt_event *event) {
  (void)event;
  const char *words = greeting();
  const char *whom = periapt_param_text("whom");
  if (words == NULL || whom == NULL) return;
  periapt_action_log("greeting %s", whom);
  periapt_result("greeting", "%s, %s!", words, whom);
}

const periapt_handler periapt_handlers[] = {
    {"config-changed", configure},
    {"greet-action", greet},
    {NULL, NULL},
};
