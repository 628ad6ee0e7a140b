// The unit in memory that answers a charm under test. Nothing is ever freed: a test's process is short.
#ifndef PERIAPT_TEST_HOST_H
#define PERIAPT_TEST_HOST_H

#include "charm.h"
#include "periapt_test.h"

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

// A container, with as much of a Pebble as charms see of it.
struct container {
  const char *name;
  struct {
    const char *path, *data;
    size_t length;
    bool is_directory;
  } files[HOST_MAX];
  size_t file_count;
  struct entries layers, services, checks, notices, answers;
  const char *actions, *plan, *sends;
  size_t sends_length;
  // The body of the order of the last command, how it ended, and what it printed to standard error.
  const char *command;
  pt_output (*run)(const char *const command[], const char *input, size_t length);
  pt_output output;
  bool has_run;
  // What is sent on websockets in place of frames, after which they end.
  const char *frames;
  size_t frames_length;
};

// A stream to a workload: what the charm sent and was not answered yet, and the answer that it has not read yet.
struct stream {
  struct container *container; // NULL: a port
  const char *page;
  char *sent, *answer;
  size_t sent_length, answer_length, taken;
  bool is_open, is_over;
  // The websocket that the stream has become, and the input that came on it.
  const char *websocket;
  char *input;
  size_t input_length;
};

#define HOST_MAX_STREAMS 16
#define HOST_MAX_CONTAINERS 8

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
  struct container containers[HOST_MAX_CONTAINERS];
  size_t container_count;
  // Pages by their ports.
  struct entries pages;
  struct stream streams[HOST_MAX_STREAMS + 1];
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
// A container that was started; one that was not ends the test.
struct container *host_container(const char *name);
// Writes a file of a container, or makes a directory; data NULL removes all at and below the path.
void host_write(struct container *container, const char *path, const char *data, size_t length, bool is_directory);
// Answers a request to a container's Pebble with a whole response.
struct host_reply {
  unsigned status;
  const char *kind, *body;
  size_t length;
} host_pebble(struct container *container, const char *method, const char *path, const char *body, size_t length);
// Runs the command whose input has come.
void host_run(struct container *container, const char *input, size_t length);
// Runs a hook of an event.
bool pt_event(exports_periapt_charm_handler_invocation_t *invocation);
// Sets a key; NULL deletes it.
void host_put(struct entries *entries, const char *scope, const char *key, const char *value);

#endif
