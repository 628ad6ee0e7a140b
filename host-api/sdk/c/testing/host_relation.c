// Relations, and who reads and writes which bag.
#include <stdlib.h>
#include <string.h>

#include "host.h"

void periapt_charm_relations_ids(charm_string_t *endpoint, periapt_charm_relations_list_relation_id_t *ret) {
  *ret = (periapt_charm_relations_list_relation_id_t){calloc(HOST_MAX, sizeof *ret->ptr), 0};
  if (ret->ptr == NULL) abort();
  for (uint32_t id = 0; id < host.relation_count; id++) {
    const struct relation *relation = &host.relations[id];
    if (relation->is_there && strcmp(relation->endpoint, host_text(endpoint)) == 0) ret->ptr[ret->len++] = id;
  }
}

static struct relation *found(uint32_t id, periapt_charm_types_error_t *error) {
  if (id < host.relation_count) return &host.relations[id];
  host_refuse(error, PERIAPT_CHARM_TYPES_ERROR_NOT_FOUND, "relation not found");
  return NULL;
}

bool periapt_charm_relations_remote_application(uint32_t id, charm_string_t *ret, periapt_charm_types_error_t *error) {
  struct relation *relation = found(id, error);
  if (relation == NULL) return false;
  *ret = host_string(relation->app);
  return true;
}

// Units by their numbers, as the host sorts them.
static int by_number(const void *one, const void *other) {
  const char *slashes[] = {strchr(*(const char *const *)one, '/'), strchr(*(const char *const *)other, '/')};
  if (slashes[0] == NULL || slashes[1] == NULL) return 0;
  return atoi(slashes[0] + 1) - atoi(slashes[1] + 1);
}

bool periapt_charm_relations_members(uint32_t id, charm_list_string_t *ret, periapt_charm_types_error_t *error) {
  struct relation *relation = found(id, error);
  if (relation == NULL) return false;
  *ret = (charm_list_string_t){calloc(HOST_MAX, sizeof *ret->ptr), relation->member_count};
  if (ret->ptr == NULL) abort();
  const char *sorted[HOST_MAX];
  memcpy(sorted, relation->members, sizeof sorted);
  qsort(sorted, relation->member_count, sizeof *sorted, by_number);
  for (size_t i = 0; i < relation->member_count; i++) ret->ptr[i] = host_string(sorted[i]);
  return true;
}

static bool is_member(const struct relation *relation, const char *unit) {
  for (size_t i = 0; i < relation->member_count; i++) {
    if (strcmp(relation->members[i], unit) == 0) return true;
  }
  return false;
}

// Whether a unit ever had a bag in a relation: also those that have left.
static bool had_bag(uint32_t id, const struct relation *relation, const char *unit) {
  for (size_t i = 0; i < host.durable.bags.count; i++) {
    if (strcmp(host.durable.bags.all[i].scope, host_bag(id, unit)) == 0) return true;
  }
  return is_member(relation, unit);
}

// The length of an application's name that a text begins with; 0 if it begins with none.
static size_t app_length(const char *text) {
  if (*text < 'a' || *text > 'z') return 0;
  return strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-");
}

// Who may read what, as the host decides it: the own application's bag only the leader outside peer relations, and no bag of
// a unit that is not in the relation.
static bool check_read(uint32_t id, const struct relation *relation, const periapt_charm_relations_bag_t *bag,
                       periapt_charm_types_error_t *error) {
  const char *owner = host_text(&bag->val.unit);
  bool is_peer = strcmp(relation->app, host_app()) == 0;
  bool is_denied;
  if (bag->tag == PERIAPT_CHARM_RELATIONS_BAG_APPLICATION) {
    bool is_own = strcmp(owner, host_app()) == 0;
    is_denied = is_own ? !host.leader && !is_peer : strcmp(owner, relation->app) != 0;
  } else {
    if (strcmp(owner, host.unit) == 0) return true;
    size_t length = app_length(owner);
    if (length > 0 && owner[length] == '\0') {
      return host_refuse(error, PERIAPT_CHARM_TYPES_ERROR_INVALID_ARGUMENT,
                         "expected unit name, got application name \"%s\"", owner);
    }
    const char *number = owner + length + 1;
    if (length == 0 || owner[length] != '/' || *number == '\0' || number[strspn(number, "0123456789")] != '\0') {
      return host_refuse(error, PERIAPT_CHARM_TYPES_ERROR_INVALID_ARGUMENT, "invalid unit name \"%s\"", owner);
    }
    is_denied = strlen(relation->app) != length || strncmp(owner, relation->app, length) != 0;
    if (!is_denied && !had_bag(id, relation, owner)) {
      return host_refuse(error, PERIAPT_CHARM_TYPES_ERROR_NOT_FOUND, "unit \"%s\": settings not found", owner);
    }
  }
  return !is_denied || host_refuse(error, PERIAPT_CHARM_TYPES_ERROR_PERMISSION_DENIED, "permission denied");
}

bool periapt_charm_relations_get_value(uint32_t id, periapt_charm_relations_bag_t *bag, charm_string_t *key,
                                       charm_option_string_t *ret, periapt_charm_types_error_t *error) {
  struct relation *relation = found(id, error);
  if (relation == NULL || !check_read(id, relation, bag, error)) return false;
  const char *value = host_find(&host.durable.bags, host_bag(id, host_text(&bag->val.unit)), host_text(key));
  *ret = (charm_option_string_t){value != NULL, host_string(value)};
  return true;
}

bool periapt_charm_relations_set(uint32_t id, periapt_charm_relations_own_bag_t bag,
                                 charm_list_tuple2_string_string_t *changes, periapt_charm_types_error_t *error) {
  if (found(id, error) == NULL) return false;
  bool is_app = bag == PERIAPT_CHARM_RELATIONS_OWN_BAG_APPLICATION;
  if (is_app && !host.leader) {
    return host_refuse(error, PERIAPT_CHARM_TYPES_ERROR_NOT_LEADER, "cannot write relation settings");
  }
  const char *scope = host_bag(id, is_app ? host_app() : host.unit);
  for (size_t i = 0; i < changes->len; i++) {
    const char *value = host_text(&changes->ptr[i].f1);
    host_put(&host.durable.bags, scope, host_text(&changes->ptr[i].f0), *value == '\0' ? NULL : value);
  }
  return true;
}
