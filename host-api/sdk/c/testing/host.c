// The host's functions that the SDK calls, answered from memory: the same refusals, in the same words.
#include "host.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct host host;

charm_string_t host_string(const char *text) {
  if (text == NULL) return (charm_string_t){NULL, 0};
  size_t length = strlen(text);
  uint8_t *copy = malloc(length + 1);
  if (copy == NULL) abort();
  memcpy(copy, text, length + 1);
  return (charm_string_t){copy, length};
}

const char *host_text(const charm_string_t *string) {
  char *copy = malloc(string->len + 1);
  if (copy == NULL) abort();
  if (string->len > 0) memcpy(copy, string->ptr, string->len);
  copy[string->len] = '\0';
  return copy;
}

const char *host_bag(uint32_t relation, const char *owner) {
  char name[300];
  snprintf(name, sizeof name, "%u %s", (unsigned)relation, owner);
  charm_string_t copy = host_string(name);
  return (const char *)copy.ptr;
}

const char *host_find(const struct entries *entries, const char *scope, const char *key) {
  for (size_t i = 0; i < entries->count; i++) {
    if (strcmp(entries->all[i].scope, scope) == 0 && strcmp(entries->all[i].key, key) == 0) return entries->all[i].value;
  }
  return NULL;
}

void host_put(struct entries *entries, const char *scope, const char *key, const char *value) {
  for (size_t i = 0; i < entries->count; i++) {
    if (strcmp(entries->all[i].scope, scope) != 0 || strcmp(entries->all[i].key, key) != 0) continue;
    if (value == NULL) entries->all[i] = entries->all[--entries->count];
    else entries->all[i].value = value;
    return;
  }
  if (value == NULL) return;
  if (entries->count == HOST_MAX) abort();
  entries->all[entries->count].scope = scope;
  entries->all[entries->count].key = key;
  entries->all[entries->count++].value = value;
}

bool host_refuse(periapt_charm_types_error_t *error, uint8_t tag, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  char said[1000];
  vsnprintf(said, sizeof said, format, arguments);
  va_end(arguments);
  error->tag = tag;
  error->val.failed = host_string(said);
  return false;
}

const char *host_app(void) {
  charm_string_t name = host_string(host.unit);
  char *slash = strchr((char *)name.ptr, '/');
  if (slash != NULL) *slash = '\0';
  return (const char *)name.ptr;
}

void periapt_charm_identity_unit_name(charm_string_t *ret) { *ret = host_string(host.unit); }
void periapt_charm_identity_application_name(charm_string_t *ret) { *ret = host_string(host_app()); }
void periapt_charm_identity_model_name(charm_string_t *ret) { *ret = host_string("test"); }

bool periapt_charm_identity_private_address(charm_string_t *ret, periapt_charm_types_error_t *error) {
  (void)error;
  *ret = host_string("10.0.0.1");
  return true;
}

bool periapt_charm_leadership_is_leader(bool *ret, periapt_charm_types_error_t *error) {
  (void)error;
  *ret = host.leader;
  return true;
}

bool periapt_charm_config_get(charm_string_t *key, periapt_charm_config_value_t *ret) {
  for (size_t i = 0; i < host.option_count; i++) {
    if (strcmp(host.options[i].key, host_text(key)) != 0) continue;
    *ret = host.options[i].value;
    return true;
  }
  return false;
}

static const char *shown(periapt_charm_status_workload_status_t status, charm_string_t *message) {
  static const char *const names[] = {"maintenance", "blocked", "waiting", "active"};
  char text[1000];
  snprintf(text, sizeof text, "%s%s%s", names[status], message->len > 0 ? ": " : "", host_text(message));
  return (const char *)host_string(text).ptr;
}

bool periapt_charm_status_set(periapt_charm_status_workload_status_t status, charm_string_t *message,
                              periapt_charm_types_error_t *error) {
  (void)error;
  host.status = shown(status, message);
  return true;
}

bool periapt_charm_status_set_application(periapt_charm_status_workload_status_t status, charm_string_t *message,
                                          periapt_charm_types_error_t *error) {
  (void)status, (void)message;
  if (host.leader) return true;
  return host_refuse(error, PERIAPT_CHARM_TYPES_ERROR_NOT_LEADER, "this unit is not the leader");
}

bool periapt_charm_status_set_application_version(charm_string_t *version, periapt_charm_types_error_t *error) {
  (void)error;
  host.version = host_text(version);
  return true;
}

void periapt_charm_log_write(periapt_charm_log_level_t level, charm_string_t *message) {
  (void)level;
  host.logged = host_text(message);
}

bool periapt_charm_state_get(charm_string_t *key, charm_string_t *ret) {
  const char *value = host_find(&host.durable.state, "", host_text(key));
  if (value == NULL) return false;
  *ret = host_string(value);
  return true;
}

bool periapt_charm_state_set(charm_list_tuple2_string_string_t *changes, periapt_charm_types_error_t *error) {
  for (size_t i = 0; i < changes->len; i++) {
    if (changes->ptr[i].f0.len == 0) {
      return host_refuse(error, PERIAPT_CHARM_TYPES_ERROR_INVALID_ARGUMENT, "a key must not be empty");
    }
    host_put(&host.durable.state, "", host_text(&changes->ptr[i].f0), host_text(&changes->ptr[i].f1));
  }
  return true;
}

bool periapt_charm_state_delete(charm_string_t *key, periapt_charm_types_error_t *error) {
  (void)error;
  host_put(&host.durable.state, "", host_text(key), NULL);
  return true;
}

static size_t place_of(const periapt_charm_ports_ports_t *ports) {
  struct durable *durable = &host.durable;
  for (size_t i = 0; i < durable->port_count; i++) {
    const periapt_charm_ports_ports_t *open = &durable->ports[i];
    if (open->tag == ports->tag && open->val.tcp.first == ports->val.tcp.first &&
        open->val.tcp.last == ports->val.tcp.last) {
      return i;
    }
  }
  return durable->port_count;
}

bool periapt_charm_ports_open(periapt_charm_ports_ports_t *ports, charm_list_string_t *endpoints,
                              periapt_charm_types_error_t *error) {
  (void)endpoints, (void)error;
  size_t place = place_of(ports);
  if (place == HOST_MAX) abort();
  if (place == host.durable.port_count) host.durable.ports[host.durable.port_count++] = *ports;
  return true;
}

bool periapt_charm_ports_close(periapt_charm_ports_ports_t *ports, charm_list_string_t *endpoints,
                               periapt_charm_types_error_t *error) {
  (void)endpoints, (void)error;
  size_t place = place_of(ports);
  if (place < host.durable.port_count) host.durable.ports[place] = host.durable.ports[--host.durable.port_count];
  return true;
}

void periapt_charm_ports_opened(periapt_charm_ports_list_opened_ports_t *ret) {
  size_t count = host.durable.port_count;
  *ret = (periapt_charm_ports_list_opened_ports_t){calloc(count + 1, sizeof *ret->ptr), count};
  if (ret->ptr == NULL) abort();
  for (size_t i = 0; i < count; i++) ret->ptr[i].ports = host.durable.ports[i];
}

bool periapt_charm_secrets_get(charm_string_t *uri, charm_string_t *label, periapt_charm_secrets_revision_mode_t mode,
                               charm_list_tuple2_string_list_u8_t *ret,
                               periapt_charm_types_error_t *error) {
  (void)label, (void)mode;
  const char *name = host_text(uri);
  *ret = (charm_list_tuple2_string_list_u8_t){calloc(HOST_MAX, sizeof *ret->ptr), 0};
  if (ret->ptr == NULL) abort();
  for (size_t i = 0; i < host.secrets.count; i++) {
    if (strcmp(host.secrets.all[i].scope, name) != 0) continue;
    charm_string_t value = host_string(host.secrets.all[i].value);
    ret->ptr[ret->len].f0 = host_string(host.secrets.all[i].key);
    ret->ptr[ret->len].f1.ptr = value.ptr;
    ret->ptr[ret->len++].f1.len = value.len;
  }
  if (ret->len > 0) return true;
  const char *colon = strrchr(name, ':'), *id = colon == NULL ? name : colon + 1;
  if (strlen(id) != 20 || strspn(id, "0123456789abcdefghijklmnopqrstuv") != 20) {
    return host_refuse(error, PERIAPT_CHARM_TYPES_ERROR_INVALID_ARGUMENT, "secret URI \"%s\" not valid", name);
  }
  return host_refuse(error, PERIAPT_CHARM_TYPES_ERROR_NOT_FOUND, "secret \"%s\" not found", id);
}

// No tool has an answer here.
void periapt_charm_hook_tools_run(charm_string_t *name, charm_list_string_t *args, charm_list_u8_t *stdin_,
                                  periapt_charm_hook_tools_output_t *ret) {
  (void)args, (void)stdin_;
  char text[300];
  snprintf(text, sizeof text, "ERROR the harness has no answer for %s\n", host_text(name));
  charm_string_t said = host_string(text);
  *ret = (periapt_charm_hook_tools_output_t){1, {NULL, 0}, {said.ptr, said.len}};
}
