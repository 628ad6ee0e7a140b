#include "greeting.h"

#include <periapt.h>
#include <stdlib.h>

const char *greeting(void) {
  const char *words = periapt_config_text("greeting", "Hello");
  if (words != NULL && *words == '\0') {
    periapt_status(PERIAPT_BLOCKED, "option greeting is empty, expected something to say");
    return NULL;
  }
  return words;
}

const char *greeting_for(uint32_t relation, const char *unit) {
  const char *name = periapt_get(relation, unit, "name");
  const char *words = greeting();
  if (words == NULL) return NULL;
  return periapt_text("%s, %s!", words, name == NULL ? unit : name);
}

int count_greeting(void) {
  const char *before = periapt_state("greetings");
  int times = (before == NULL ? 0 : atoi(before)) + 1;
  periapt_keep("greetings", "%d", times);
  return times;
}
