#include "internal.h"

periapt_ids periapt_relations(const char *endpoint) {
  if (periapt_failed()) return (periapt_ids){NULL, 0};
  charm_string_t name = periapt_lent(endpoint);
  periapt_charm_relations_list_relation_id_t ids;
  periapt_charm_relations_ids(&name, &ids);
  return (periapt_ids){ids.ptr, ids.len};
}

// What is being done, for the message of a refusal.
static const char *about(uint32_t relation) { return periapt_text("relation %u", (unsigned)relation); }

const char *periapt_remote_app(uint32_t relation) {
  if (periapt_failed()) return NULL;
  charm_string_t app;
  periapt_charm_types_error_t error;
  if (periapt_charm_relations_remote_application(relation, &app, &error)) return periapt_copied(&app);
  periapt_refused(about(relation), &error);
  return NULL;
}

periapt_texts periapt_members(uint32_t relation) {
  periapt_texts none = {NULL, 0};
  if (periapt_failed()) return none;
  charm_list_string_t units;
  periapt_charm_types_error_t error;
  if (!periapt_charm_relations_members(relation, &units, &error)) {
    periapt_refused(about(relation), &error);
    return none;
  }
  const char **names = periapt_memory(units.len * sizeof *names);
  for (size_t i = 0; i < units.len; i++) names[i] = periapt_copied(&units.ptr[i]);
  return (periapt_texts){names, units.len};
}

static const char *read(uint32_t relation, periapt_charm_relations_bag_t *bag, const char *owner, const char *key) {
  if (periapt_failed()) return NULL;
  charm_string_t name = periapt_lent(key);
  charm_option_string_t value;
  periapt_charm_types_error_t error;
  if (!periapt_charm_relations_get_value(relation, bag, &name, &value, &error)) {
    periapt_refused(periapt_text("bag of %s in relation %u", owner, (unsigned)relation), &error);
    return NULL;
  }
  return value.is_some ? periapt_copied(&value.val) : NULL;
}

const char *periapt_get(uint32_t relation, const char *unit, const char *key) {
  periapt_charm_relations_bag_t bag = {.tag = PERIAPT_CHARM_RELATIONS_BAG_UNIT, .val.unit = periapt_lent(unit)};
  return read(relation, &bag, unit, key);
}

const char *periapt_get_app(uint32_t relation, const char *app, const char *key) {
  periapt_charm_relations_bag_t bag = {.tag = PERIAPT_CHARM_RELATIONS_BAG_APPLICATION,
                                       .val.application = periapt_lent(app)};
  return read(relation, &bag, app, key);
}

static void write(uint32_t relation, periapt_charm_relations_own_bag_t bag, const char *key, const char *value) {
  charm_tuple2_string_string_t change = {periapt_lent(key), periapt_lent(value)};
  charm_list_tuple2_string_string_t changes = {&change, 1};
  periapt_charm_types_error_t error;
  if (!periapt_charm_relations_set(relation, bag, &changes, &error)) {
    periapt_refused(periapt_text("own bag in relation %u", (unsigned)relation), &error);
  }
}

void periapt_set(uint32_t relation, const char *key, const char *format, ...) {
  if (periapt_failed()) return;
  va_list arguments;
  va_start(arguments, format);
  write(relation, PERIAPT_CHARM_RELATIONS_OWN_BAG_UNIT, key, periapt_formatted(format, arguments));
  va_end(arguments);
}

void periapt_set_app(uint32_t relation, const char *key, const char *format, ...) {
  if (periapt_failed()) return;
  va_list arguments;
  va_start(arguments, format);
  write(relation, PERIAPT_CHARM_RELATIONS_OWN_BAG_APPLICATION, key, periapt_formatted(format, arguments));
  va_end(arguments);
}
