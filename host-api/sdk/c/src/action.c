#include <stdlib.h>
#include <string.h>

#include "internal.h"

const char *periapt_param_json(const char *path) {
  if (periapt_failed()) return NULL;
  charm_string_t name = periapt_lent(path);
  charm_option_string_t value;
  periapt_charm_types_error_t error;
  if (!periapt_charm_actions_param(&name, &value, &error)) {
    periapt_refused(path, &error);
    return NULL;
  }
  return value.is_some ? periapt_copied(&value.val) : NULL;
}

const char *periapt_param_text(const char *path) {
  const char *json = periapt_param_json(path);
  if (json == NULL || periapt_is(json, "null")) return NULL;
  const char *text = periapt_json_text(json);
  if (text == NULL) periapt_fail("parameter %s is %s, expected a text", path, json);
  return text;
}

int64_t periapt_param_integer(const char *path, int64_t otherwise) {
  const char *json = periapt_param_json(path);
  if (json == NULL || periapt_is(json, "null")) return periapt_failed() ? 0 : otherwise;
  char *end;
  long long number = strtoll(json, &end, 10);
  if (end == json || *end != '\0') {
    periapt_fail("parameter %s is %s, expected a whole number", path, json);
    return 0;
  }
  return number;
}

void periapt_result(const char *key, const char *format, ...) {
  if (periapt_failed()) return;
  va_list arguments;
  va_start(arguments, format);
  charm_tuple2_string_string_t result = {periapt_lent(key), periapt_lent(periapt_formatted(format, arguments))};
  va_end(arguments);
  charm_list_tuple2_string_string_t results = {&result, 1};
  periapt_charm_types_error_t error;
  if (!periapt_charm_actions_set_results(&results, &error)) periapt_refused("setting a result", &error);
}

void periapt_action_log(const char *format, ...) {
  if (periapt_failed()) return;
  va_list arguments;
  va_start(arguments, format);
  charm_string_t message = periapt_lent(periapt_formatted(format, arguments));
  va_end(arguments);
  periapt_charm_types_error_t error;
  if (!periapt_charm_actions_log(&message, &error)) periapt_refused("logging", &error);
}

void periapt_action_fail(const char *format, ...) {
  if (periapt_failed()) return;
  va_list arguments;
  va_start(arguments, format);
  charm_string_t message = periapt_lent(periapt_formatted(format, arguments));
  va_end(arguments);
  periapt_charm_types_error_t error;
  if (!periapt_charm_actions_fail(&message, &error)) periapt_refused("failing", &error);
}
