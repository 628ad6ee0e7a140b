// The action that runs: its parameters, results and messages.
#include <stdlib.h>
#include <string.h>

#include "host.h"

static bool is_running(periapt_charm_types_error_t *error) {
  if (host.runs_action) return true;
  return host_refuse(error, PERIAPT_CHARM_TYPES_ERROR_WRONG_CONTEXT, "not running an action");
}

bool periapt_charm_actions_param(charm_string_t *path, charm_option_string_t *ret, periapt_charm_types_error_t *error) {
  if (!is_running(error)) return false;
  const char *json = host_find(&host.params, "", host_text(path));
  *ret = (charm_option_string_t){json != NULL, host_string(json)};
  return true;
}

static bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

// Whether a key of results is a path of words that hyphens may stand in.
static bool is_path(const char *key) {
  size_t length = strlen(key);
  if (length == 0 || !is_word(key[0]) || !is_word(key[length - 1])) return false;
  for (size_t i = 0; i < length; i++) {
    if (!is_word(key[i]) && key[i] != '-' && key[i] != '.') return false;
    if (key[i] == '.' && (!is_word(key[i - 1]) || !is_word(key[i + 1]))) return false;
  }
  return true;
}

// Whether the host sets a result itself.
static bool is_reserved(const char *key) {
  static const char *const names[] = {"stdout", "stdout-encoding", "stderr", "stderr-encoding"};
  size_t length = strcspn(key, ".");
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (strlen(names[i]) == length && strncmp(names[i], key, length) == 0) return true;
  }
  return false;
}

bool periapt_charm_actions_set_results(charm_list_tuple2_string_string_t *results, periapt_charm_types_error_t *error) {
  if (!is_running(error)) return false;
  for (size_t i = 0; i < results->len; i++) {
    const char *key = host_text(&results->ptr[i].f0);
    if (!is_path(key)) {
      return host_refuse(error, PERIAPT_CHARM_TYPES_ERROR_INVALID_ARGUMENT,
                         "key \"%s\" must start and end with lowercase alphanumeric, and contain only lowercase "
                         "alphanumeric, hyphens and periods",
                         key);
    }
    if (is_reserved(key)) {
      return host_refuse(error, PERIAPT_CHARM_TYPES_ERROR_INVALID_ARGUMENT, "cannot set reserved action key \"%s\"", key);
    }
    host_put(&host.durable.results, "", key, host_text(&results->ptr[i].f1));
  }
  return true;
}

bool periapt_charm_actions_log(charm_string_t *message, periapt_charm_types_error_t *error) {
  if (!is_running(error)) return false;
  host.logged = host_text(message);
  return true;
}

bool periapt_charm_actions_fail(charm_string_t *message, periapt_charm_types_error_t *error) {
  if (!is_running(error)) return false;
  const char *unsaid = "action failed without reason given, check action for errors";
  host.action_failure = message == NULL || message->len == 0 ? unsaid : host_text(message);
  return true;
}
