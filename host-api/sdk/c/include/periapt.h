// Write Periapt charms in C.
//
// A charm is a table of handlers, one for each event that it handles:
//
//     #include <periapt.h>
//
//     static void configure(const periapt_event *event) {
//       (void)event;
//       periapt_only_tcp(periapt_config_integer("port", 80));
//       periapt_status(PERIAPT_ACTIVE, "says %s", periapt_config_text("greeting", "hello"));
//     }
//
//     const periapt_handler periapt_handlers[] = {
//         {"config-changed", configure},
//         {NULL, NULL},
//     };
//
// Failures: the first call that the host refuses fails the hook, with what the host said; whatever is called after it
// does nothing, and answers NULL, 0 or false. So a handler may look at nothing but what it was after. `periapt_failed` says
// whether it came to that, and `periapt_forgive` goes on as if nothing had happened.
//
// Memory: each hook runs in a fresh instance, which is gone when the hook ends. All texts and lists that are answered live
// until then; nothing has to be freed, and nothing in memory lasts.
#ifndef PERIAPT_H
#define PERIAPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PERIAPT_PRINTF(text, arguments) __attribute__((__format__(__printf__, text, arguments)))

// --- Events -------------------------------------------------------------------------------------------------------------

// What happened. What an event is not about is NULL or 0.
typedef struct periapt_event {
  const char *hook;       // as hooks are called: `config-changed`, `db-relation-joined`, `backup-action`
  uint32_t attempt;       // 1 for the first
  const char *endpoint;   // of a relation
  uint32_t relation;      // its number
  const char *app;        // the application at the other end
  const char *unit;       // the remote unit; NULL in relation-changed: the application's bag changed
  const char *departing;  // who leaves, in relation-departed
  const char *name;       // of an action, a storage, a workload, a custom event
  const char *id;         // of an action, a storage, a workload's notice
  const char *location;   // of a storage
  const char *uri;        // of a secret
  const char *label;      // of a secret; NULL if it has none
  uint32_t revision;      // of a secret
  const char *json;       // of a custom event: what its sender gave
  const char *key;        // of a workload's notice, in pebble-custom-notice
  const char *check;      // of a workload's check, in pebble-check-failed and pebble-check-recovered
} periapt_event;

typedef struct periapt_handler {
  // The hook's name; `relation-changed` without an endpoint (`storage-attached`, `action`, ...) is for all that have no handler of
  // their own, and `*` for whatever has none.
  const char *hook;
  void (*handle)(const periapt_event *event);
} periapt_handler;

// The charm's own, ended by {NULL, NULL}. An event without a handler is reported as unhandled.
extern const periapt_handler periapt_handlers[];

// --- Failures -----------------------------------------------------------------------------------------------------------

// Why the host refused a call.
typedef enum periapt_reason {
  PERIAPT_NO_REASON = -1, // it did not, or the charm failed by itself
  PERIAPT_INVALID_ARGUMENT,
  PERIAPT_NOT_FOUND,
  PERIAPT_PERMISSION_DENIED,
  PERIAPT_NOT_LEADER,
  PERIAPT_CONFLICT,
  PERIAPT_ALREADY_EXISTS,
  PERIAPT_LIMIT_EXCEEDED,
  PERIAPT_NOT_GRANTED,
  PERIAPT_NOT_READY,
  PERIAPT_TRY_AGAIN,
  PERIAPT_WRONG_CONTEXT,
  PERIAPT_NOT_SUPPORTED,
  PERIAPT_OTHER_FAILURE,
  PERIAPT_OTHER,
  PERIAPT_PEBBLE, // a container's Pebble refused a call, or failed at it: `periapt_pebble_kind` says how
} periapt_reason;

// Fails the hook: nothing that it asked for happens, save its statuses and its log. The first failure counts.
void periapt_fail(const char *format, ...) PERIAPT_PRINTF(1, 2);
// Whether the hook has failed.
bool periapt_failed(void);
// Why, if the host refused something.
periapt_reason periapt_why(void);
// What it failed with; NULL if it has not.
const char *periapt_failure(void);
// Goes on as if nothing had failed.
void periapt_forgive(void);

// --- Texts and lists ----------------------------------------------------------------------------------------------------

// A text as by printf.
const char *periapt_text(const char *format, ...) PERIAPT_PRINTF(1, 2);
// Whether two texts are the same; NULL is the same as nothing.
bool periapt_is(const char *text, const char *other);

typedef struct periapt_texts {
  const char *const *items;
  size_t count;
} periapt_texts;

typedef struct periapt_ids {
  const uint32_t *items;
  size_t count;
} periapt_ids;

// --- The unit -----------------------------------------------------------------------------------------------------------

const char *periapt_unit(void);
const char *periapt_app(void);
const char *periapt_model(void);
const char *periapt_private_address(void);
// True is guaranteed for 30 seconds from the answer.
bool periapt_is_leader(void);

// Options: `otherwise` is for those that are not set. One of another type fails the hook.
const char *periapt_config_text(const char *key, const char *otherwise);
int64_t periapt_config_integer(const char *key, int64_t otherwise);
double periapt_config_number(const char *key, double otherwise);
bool periapt_config_boolean(const char *key, bool otherwise);

typedef enum periapt_workload { PERIAPT_MAINTENANCE, PERIAPT_BLOCKED, PERIAPT_WAITING, PERIAPT_ACTIVE } periapt_workload;

// Seen at once; stays if the hook fails.
void periapt_status(periapt_workload workload, const char *format, ...) PERIAPT_PRINTF(2, 3);
// Leader only.
void periapt_app_status(periapt_workload workload, const char *format, ...) PERIAPT_PRINTF(2, 3);
// The version of the workload.
void periapt_version(const char *version);

typedef enum periapt_level { PERIAPT_TRACE, PERIAPT_DEBUG, PERIAPT_INFO, PERIAPT_WARNING, PERIAPT_ERROR } periapt_level;

// A line in the unit's log, also of a hook that has failed.
void periapt_log(periapt_level level, const char *format, ...) PERIAPT_PRINTF(2, 3);

void periapt_open_tcp(int64_t port);
void periapt_close_tcp(int64_t port);
// Opens this TCP port, and closes all others of whatever protocol.
void periapt_only_tcp(int64_t port);

// What the charm keeps for its unit from one hook to the next; NULL: there is nothing under the key.
const char *periapt_state(const char *key);
void periapt_keep(const char *key, const char *format, ...) PERIAPT_PRINTF(2, 3);
void periapt_forget(const char *key);

// --- Relations ----------------------------------------------------------------------------------------------------------

// The relations of an endpoint.
periapt_ids periapt_relations(const char *endpoint);
// The application at the other end.
const char *periapt_remote_app(uint32_t relation);
// The remote units that this unit has been told of, sorted.
periapt_texts periapt_members(uint32_t relation);
// A key of a unit's bag, or of an application's; NULL if it is not there.
const char *periapt_get(uint32_t relation, const char *unit, const char *key);
const char *periapt_get_app(uint32_t relation, const char *app, const char *key);
// Writes to the unit's own bag; an empty value deletes the key.
void periapt_set(uint32_t relation, const char *key, const char *format, ...) PERIAPT_PRINTF(3, 4);
// Writes to the application's bag; leader only.
void periapt_set_app(uint32_t relation, const char *key, const char *format, ...) PERIAPT_PRINTF(3, 4);

// --- Secrets ------------------------------------------------------------------------------------------------------------

// A key of the content that this unit tracks, by the secret's URI; NULL if the content has no such key.
const char *periapt_secret(const char *uri, const char *key);
// The same of the latest content, which is tracked from then on.
const char *periapt_secret_refresh(const char *uri, const char *key);

// --- Actions ------------------------------------------------------------------------------------------------------------

// A parameter by its path; NULL if it was not given and has no default.
const char *periapt_param_json(const char *path);
// A text; one of another type fails the hook.
const char *periapt_param_text(const char *path);
int64_t periapt_param_integer(const char *path, int64_t otherwise);
void periapt_result(const char *key, const char *format, ...) PERIAPT_PRINTF(2, 3);
// Tells the operators who wait for the action; sent at once.
void periapt_action_log(const char *format, ...) PERIAPT_PRINTF(1, 2);
// Says that the action failed. The handler goes on, and what it asks for happens.
void periapt_action_fail(const char *format, ...) PERIAPT_PRINTF(1, 2);

// --- Workloads -----------------------------------------------------------------------------------------------------------

// A container of this unit, by its name, and its Pebble: its services and files. A WebAssembly workload is a container of its name.
// Calls take effect at once, and stay if the hook fails. One that Pebble refuses fails the hook, as a refusal of the host does.

// Whether the container has started and answers. Fails nothing.
bool periapt_pebble_can_connect(const char *container);
// How Pebble failed: its word, such as `not-found`, `permission-denied`, `generic-file-error`, `api` if it gave none, or the SDK's:
// `change-failed`, `timeout`, `broken` (the answer broke off, or makes no sense), `invalid`. NULL if it did not fail.
const char *periapt_pebble_kind(void);

// Adds a layer in YAML, or combines it with the layer of the same label. `replan` applies it.
void periapt_pebble_add_layer(const char *container, const char *label, const char *layer);
// What all layers give together, in YAML.
const char *periapt_pebble_plan(const char *container);
// Starts enabled services that do not run, restarts those that the plan has otherwise, and waits for them.
void periapt_pebble_replan(const char *container);
void periapt_pebble_start(const char *container, const char *service);
void periapt_pebble_stop(const char *container, const char *service);
void periapt_pebble_restart(const char *container, const char *service);
// Sends a signal, such as SIGHUP, to a service that runs.
void periapt_pebble_send_signal(const char *container, const char *signal, const char *service);
// A service's state: `active`, `inactive`, `backoff` or `error`; NULL if the plan has no such service.
const char *periapt_pebble_service(const char *container, const char *service);
// A check's state: `up`, `down` or `inactive`; NULL if the plan has no such check.
const char *periapt_pebble_check(const char *container, const char *check);
// Starts a check, or stops it until it is started again, or until `replan`. True: it has changed; false: it ran, or rested, already.
bool periapt_pebble_start_check(const char *container, const char *check);
bool periapt_pebble_stop_check(const char *container, const char *check);
// Makes a custom notice, or repeats it. A key is as in `example.com/backup-done`.
void periapt_pebble_notify(const char *container, const char *key);
// The value under a name in the data of a notice, by the notice's id (`event->id`); NULL if there is none.
const char *periapt_pebble_notice(const char *container, const char *id, const char *name);

typedef struct periapt_bytes {
  const char *data; // a NUL follows the last byte
  size_t length;
} periapt_bytes;

// Writes a file, with the directories above it.
void periapt_pebble_push(const char *container, const char *path, const char *content);
// The same of bytes, with permissions such as 0600; 0: those that Pebble gives.
void periapt_pebble_push_bytes(const char *container, const char *path, periapt_bytes content, unsigned permissions);
// Reads a file of at most 8 MiB; without data if that fails.
periapt_bytes periapt_pebble_pull(const char *container, const char *path);
// Whether there is something at a path.
bool periapt_pebble_exists(const char *container, const char *path);
// The names in a directory, sorted.
periapt_texts periapt_pebble_list_files(const char *container, const char *path);
// Makes a directory, with those above it; one that is there stays.
void periapt_pebble_make_dir(const char *container, const char *path);
// Removes a file, or a directory with all that is in it. A path that is not there is no failure.
void periapt_pebble_remove_path(const char *container, const char *path);

// How a command ended, and what it printed; code -1: the hook has failed.
typedef struct periapt_output {
  int code;
  periapt_bytes out, err;
} periapt_output;

// Runs a command, a list of its program and its arguments that ends with NULL, without a shell, and waits for its end. The input may be
// {NULL, 0}. After so many seconds Pebble kills it, which is a failure of the kind `change-failed`; 0: the hook's own time is the
// bound. It takes four of the hook's 16 streams, and each output has 8 MiB at most. Another exit code than 0 is no failure.
periapt_output periapt_pebble_exec(const char *container, const char *const command[], periapt_bytes input, unsigned seconds);
// Runs a command that must exit with 0, else the kind of the failure is `exit-code`. What it printed.
const char *periapt_pebble_run(const char *container, const char *const command[]);
#define PERIAPT_PEBBLE_RUN(container, ...) periapt_pebble_run((container), (const char *const[]){__VA_ARGS__, NULL})

typedef struct periapt_page {
  int status; // 0: nobody answered, and the hook has failed
  periapt_bytes body;
} periapt_page;

// Asks a workload of this unit for a page of at most 4 MiB, by its port and a path such as `/health`.
periapt_page periapt_workload_page(uint16_t port, const char *path);

// --- Hook tools ---------------------------------------------------------------------------------------------------------

// Runs one of Juju's hook tools, by a list of its name and its arguments that ends with NULL. What it printed, without its last
// newline; a tool that fails fails the hook.
const char *periapt_tool(const char *const arguments[]);
#define PERIAPT_TOOL(...) periapt_tool((const char *const[]){__VA_ARGS__, NULL})

// The text of a JSON text (`"a\n"`): unescaped; NULL if it is something else.
const char *periapt_json_text(const char *json);

#endif
