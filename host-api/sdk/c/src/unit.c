// Who the unit is, what the operator set, and what the unit says of itself.
#include <inttypes.h>
#include <stdio.h>

#include "internal.h"

static const char *taken(void (*ask)(charm_string_t *)) {
  charm_string_t answer;
  ask(&answer);
  return periapt_copied(&answer);
}

const char *periapt_unit(void) { return taken(periapt_charm_identity_unit_name); }
const char *periapt_app(void) { return taken(periapt_charm_identity_application_name); }
const char *periapt_model(void) { return taken(periapt_charm_identity_model_name); }

const char *periapt_private_address(void) {
  if (periapt_failed()) return NULL;
  charm_string_t address;
  periapt_charm_types_error_t error;
  if (periapt_charm_identity_private_address(&address, &error)) return periapt_copied(&address);
  periapt_refused("private address", &error);
  return NULL;
}

bool periapt_is_leader(void) {
  if (periapt_failed()) return false;
  bool leads;
  periapt_charm_types_error_t error;
  if (periapt_charm_leadership_is_leader(&leads, &error)) return leads;
  periapt_refused("leadership", &error);
  return false;
}

// Whether an option has a value.
static bool option(const char *key, periapt_charm_config_value_t *value) {
  charm_string_t name = periapt_lent(key);
  return !periapt_failed() && periapt_charm_config_get(&name, value);
}

static void mismatch(const char *key, const char *expected) { periapt_fail("option %s is no %s", key, expected); }

const char *periapt_config_text(const char *key, const char *otherwise) {
  periapt_charm_config_value_t value;
  if (!option(key, &value)) return periapt_failed() ? NULL : otherwise;
  if (value.tag == PERIAPT_CHARM_CONFIG_VALUE_TEXT) return periapt_copied(&value.val.text);
  if (value.tag == PERIAPT_CHARM_CONFIG_VALUE_SECRET) return periapt_copied(&value.val.secret);
  mismatch(key, "text");
  return NULL;
}

int64_t periapt_config_integer(const char *key, int64_t otherwise) {
  periapt_charm_config_value_t value;
  if (!option(key, &value)) return periapt_failed() ? 0 : otherwise;
  if (value.tag == PERIAPT_CHARM_CONFIG_VALUE_INTEGER) return value.val.integer;
  mismatch(key, "whole number");
  return 0;
}

double periapt_config_number(const char *key, double otherwise) {
  periapt_charm_config_value_t value;
  if (!option(key, &value)) return periapt_failed() ? 0 : otherwise;
  if (value.tag == PERIAPT_CHARM_CONFIG_VALUE_NUMBER) return value.val.number;
  if (value.tag == PERIAPT_CHARM_CONFIG_VALUE_INTEGER) return (double)value.val.integer;
  mismatch(key, "number");
  return 0;
}

bool periapt_config_boolean(const char *key, bool otherwise) {
  periapt_charm_config_value_t value;
  if (!option(key, &value)) return !periapt_failed() && otherwise;
  if (value.tag == PERIAPT_CHARM_CONFIG_VALUE_BOOLEAN) return value.val.boolean;
  mismatch(key, "truth value");
  return false;
}

void periapt_status(periapt_workload workload, const char *format, ...) {
  if (periapt_failed()) return;
  va_list arguments;
  va_start(arguments, format);
  charm_string_t message = periapt_lent(periapt_formatted(format, arguments));
  va_end(arguments);
  periapt_charm_types_error_t error;
  if (!periapt_charm_status_set((periapt_charm_status_workload_status_t)workload, &message, &error)) {
    periapt_refused("setting the status", &error);
  }
}

void periapt_app_status(periapt_workload workload, const char *format, ...) {
  if (periapt_failed()) return;
  va_list arguments;
  va_start(arguments, format);
  charm_string_t message = periapt_lent(periapt_formatted(format, arguments));
  va_end(arguments);
  periapt_charm_types_error_t error;
  if (!periapt_charm_status_set_application((periapt_charm_status_workload_status_t)workload, &message, &error)) {
    periapt_refused("setting the application's status", &error);
  }
}

void periapt_version(const char *version) {
  if (periapt_failed()) return;
  charm_string_t text = periapt_lent(version);
  periapt_charm_types_error_t error;
  if (!periapt_charm_status_set_application_version(&text, &error)) periapt_refused("setting the version", &error);
}

void periapt_log(periapt_level level, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  charm_string_t message = periapt_lent(periapt_formatted(format, arguments));
  va_end(arguments);
  periapt_charm_log_write((periapt_charm_log_level_t)level, &message);
}

const char *periapt_state(const char *key) {
  if (periapt_failed()) return NULL;
  charm_string_t name = periapt_lent(key), value;
  return periapt_charm_state_get(&name, &value) ? periapt_copied(&value) : NULL;
}

void periapt_keep(const char *key, const char *format, ...) {
  if (periapt_failed()) return;
  va_list arguments;
  va_start(arguments, format);
  charm_tuple2_string_string_t change = {periapt_lent(key), periapt_lent(periapt_formatted(format, arguments))};
  va_end(arguments);
  charm_list_tuple2_string_string_t changes = {&change, 1};
  periapt_charm_types_error_t error;
  if (!periapt_charm_state_set(&changes, &error)) periapt_refused("storing", &error);
}

void periapt_forget(const char *key) {
  if (periapt_failed()) return;
  charm_string_t name = periapt_lent(key);
  periapt_charm_types_error_t error;
  if (!periapt_charm_state_delete(&name, &error)) periapt_refused("storing", &error);
}
