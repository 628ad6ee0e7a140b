// The unit in memory that answers a charm under test. Nothing is ever freed: a test's process is short.
#ifndef PERIAPT_TEST_HOST_H
#define PERIAPT_TEST_HOST_H

#include "charm.h"

#define HOST_MAX 64

// Texts by two keys.
struct entries {
  struct {
    const char *scope, *key, *value;
  } all[HOST_MAX];
  size_t count;
};

struct relation {
  const char *endpoint, *app;
  bool is_there;
  const char *members[HOST_MAX];
  size_t member_count;
};

// What a failing hook does not change.
struct durable {
  struct entries bags, state, results;
  periapt_charm_ports_ports_t ports[HOST_MAX];
  size_t port_count;
};

struct host {
  const char *unit;
  bool leader;
  struct {
    const char *key;
    periapt_charm_config_value_t value;
  } options[HOST_MAX];
  size_t option_count;
  struct relation relations[HOST_MAX];
  uint32_t relation_count;
  struct entries secrets, params;
  struct durable durable;
  bool runs_action;
  const char *status, *version, *logged, *action_failure;
};

extern struct host host;

// A copy of a text, as the bindings have it and as C has it.
charm_string_t host_string(const char *text);
const char *host_text(const charm_string_t *string);
// Refuses a call, in the host's words.
bool host_refuse(periapt_charm_types_error_t *error, uint8_t tag, const char *format, ...)
    __attribute__((__format__(__printf__, 3, 4)));
// Ends the test: it sets up what cannot be.
void host_inconsistent(const char *format, ...) __attribute__((__format__(__printf__, 1, 2), __noreturn__));
// Lets a unit's name pass.
void host_check_unit(const char *name);
// A relation that is there and not over.
struct relation *host_open_relation(uint32_t id);
// Lets a unit of the remote application pass, but not the unit itself; and only one that has joined.
void host_check_remote(uint32_t id, const char *unit);
void host_check_member(uint32_t id, const char *unit);
bool host_is_member(uint32_t id, const char *unit);
// The unit's application.
const char *host_app(void);
// The scope of a bag.
const char *host_bag(uint32_t relation, const char *owner);
const char *host_find(const struct entries *entries, const char *scope, const char *key);
// Sets a key; NULL deletes it.
void host_put(struct entries *entries, const char *scope, const char *key, const char *value);

#endif
