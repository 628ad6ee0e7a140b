// Run a charm's hooks natively, against a unit in memory: compiled with the charm and the SDK by the machine's own compiler. What
// cannot be ends the test: a remote unit of another application, the unit itself among its peers, a change by who has not joined.
//
//     #include <periapt_test.h>
//
//     static void it_greets(void) {
//       pt_unit("hello/0");
//       pt_config_text("greeting", "Ahoy");
//       PT_EXPECT(pt_run("config-changed"));
//       PT_SAME(pt_status(), "active: says Ahoy");
//     }
//
//     int main(void) {
//       PT_TEST(it_greets);
//       return pt_end();
//     }
#ifndef PERIAPT_TEST_H
#define PERIAPT_TEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// --- The unit, as the test wants it -------------------------------------------------------------------------------------

// Another unit: without options and relations, that does not lead.
void pt_unit(const char *name);
void pt_leader(bool leads);
void pt_config_text(const char *key, const char *value);
void pt_config_integer(const char *key, int64_t value);
void pt_config_boolean(const char *key, bool value);
// Adds a relation, without an event.
uint32_t pt_relate(const char *endpoint, const char *app);
// A key in the bag of a remote unit or application, without an event; an empty value deletes it.
void pt_remote(uint32_t relation, const char *owner, const char *key, const char *value);
// A secret that this unit may read, by its URI, and a key of its content.
void pt_secret(const char *uri, const char *key, const char *value);
// A parameter of the next action, as JSON.
void pt_param(const char *path, const char *json);

// --- Workloads, as the test wants them ------------------------------------------------------------------------------------

// Starts a container, without an event: hooks reach its Pebble from now on. It keeps files and layers, writes down what is asked of
// services and checks, and runs none.
void pt_container(const char *name);
// Writes a file of the container, as an image has it.
void pt_file(const char *container, const char *path, const char *content);
// A service or a check that the charm sees, and its state; the plan that it sees.
void pt_service(const char *container, const char *service, const char *state);
void pt_check(const char *container, const char *check, const char *state);
void pt_plan(const char *container, const char *yaml);
// What requests whose paths begin so are answered, in place of the container's Pebble: a status and JSON, as in `400 {}`.
void pt_answer(const char *container, const char *path, const char *answer);
// What is sent in place of each response, after which the stream ends.
void pt_sends(const char *container, const char *bytes, size_t length);
// How a command ends, and what it prints.
typedef struct pt_output {
  int code;
  const char *out;
  size_t length;
  const char *err;
} pt_output;

// Runs commands: it gets the command, a list that ends with NULL, and its input.
void pt_runs(const char *container, pt_output (*run)(const char *const command[], const char *input, size_t length));
// The page that is served on a port: a status and its body, as in `200 hello`.
void pt_page(uint16_t port, const char *page);

// --- Hooks: whether they succeeded ---------------------------------------------------------------------------------------

// One that is about nothing: `config-changed`.
bool pt_run(const char *hook);
// A remote unit comes into view.
bool pt_join(uint32_t relation, const char *unit);
// A remote unit's bag changes, or the application's: NULL.
bool pt_change(uint32_t relation, const char *unit);
// A remote unit goes.
bool pt_depart(uint32_t relation, const char *unit);
// The relation ends.
bool pt_break(uint32_t relation);
bool pt_action(const char *name);
bool pt_pebble_ready(const char *container);
bool pt_custom_notice(const char *container, const char *id, const char *key);
bool pt_check_failed(const char *container, const char *check);
bool pt_check_recovered(const char *container, const char *check);

// --- What became of it ---------------------------------------------------------------------------------------------------

// Whether the last hook had a handler.
bool pt_handled(void);
// What the last hook failed with; NULL if it did not.
const char *pt_failure(void);
// As `active: message`.
const char *pt_status(void);
const char *pt_version(void);
// The last line of the log.
const char *pt_logged(void);
bool pt_is_open(uint16_t port);
// A key of a bag, by its owner; NULL if it is not there.
const char *pt_bag(uint32_t relation, const char *owner, const char *key);
const char *pt_stored(const char *key);
// A result of the last action, and what it said that it failed with.
const char *pt_result(const char *key);
const char *pt_action_failure(void);

// A file of a container; NULL if it is not there.
const char *pt_pushed(const char *container, const char *path);
// The last layer that was added under a label, as the charm wrote it.
const char *pt_layer(const char *container, const char *label);
// What was asked of services and checks, in order: `replan; start web; SIGHUP web; stop-checks page`.
const char *pt_actions(const char *container);

// --- Tests --------------------------------------------------------------------------------------------------------------

#define PT_TEST(test) pt_test(#test, test)
#define PT_EXPECT(holds) pt_expect((holds), #holds, __FILE__, __LINE__)
#define PT_SAME(text, expected) pt_same((text), (expected), #text, __FILE__, __LINE__)

void pt_test(const char *name, void (*test)(void));
void pt_expect(bool holds, const char *what, const char *file, int line);
void pt_same(const char *text, const char *expected, const char *what, const char *file, int line);
// Says how many passed; the exit code of the whole.
int pt_end(void);

#endif
