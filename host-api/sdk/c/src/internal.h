// What the SDK's own files share.
#ifndef PERIAPT_INTERNAL_H
#define PERIAPT_INTERNAL_H

#include <stdarg.h>

#include "charm.h"
#include "periapt.h"

// Memory until the hook ends; none left traps.
void *periapt_memory(size_t size);
// A text as the bindings take it, not copied.
charm_string_t periapt_lent(const char *text);
// A text as the bindings give it, copied and ended by NUL.
const char *periapt_copied(const charm_string_t *string);
const char *periapt_formatted(const char *format, va_list arguments);
// Fails the hook with what the host said, and what was being done.
void periapt_refused(const char *what, const periapt_charm_types_error_t *error);
// Begins a hook: nothing has failed.
void periapt_begin(void);
// The exit code of what failed.
int32_t periapt_exit_code(void);
void periapt_fail_with(int32_t code, periapt_reason reason, const char *message);
// Fails the hook with what a container's Pebble said, or did not say.
void periapt_pebble_failed(const char *container, const char *kind, const char *message, unsigned status);

// Bytes that grow; they begin as zeroes.
typedef struct periapt_buffer {
  char *data;
  size_t length, room;
} periapt_buffer;

void periapt_append(periapt_buffer *buffer, const void *bytes, size_t length);
void periapt_append_text(periapt_buffer *buffer, const char *text);
// Bytes that will not grow any more, with a NUL behind them.
periapt_bytes periapt_finished(periapt_buffer *buffer);
// Where some bytes begin in others, from a place on; the length of the others if nowhere.
size_t periapt_find(const char *bytes, size_t length, size_t from, const char *mark);

// HTTP.
typedef struct periapt_request {
  const char *method, *path, *kind; // kind: the type of the body
  periapt_bytes body;
} periapt_request;

typedef struct periapt_response {
  unsigned status;
  const char *kind;
  periapt_bytes body;
} periapt_response;

// Sends a request, and reads a response whose body has at most so many bytes. What went wrong, or NULL.
const char *periapt_exchange(uint32_t stream, const periapt_request *request, size_t most, periapt_response *response);
// Makes a websocket of a stream, and takes the bytes that came behind the answer. What went wrong, or NULL.
const char *periapt_upgrade(uint32_t stream, const char *path, periapt_buffer *rest);
// What the host said.
const char *periapt_said(const periapt_charm_types_error_t *error);
// A text as a part of a query.
const char *periapt_encoded(const char *text);

// JSON: values are pointers into a text; NULL is what is not there, or no JSON.
const char *periapt_json_member(const char *value, const char *key);
// The first element of a list; the one after an element.
const char *periapt_json_first(const char *value);
const char *periapt_json_next(const char *element);
// The text of a value that is one, else NULL.
const char *periapt_json_string(const char *value);
// A text as JSON, in quotes.
const char *periapt_json_quoted(const char *text);

// Asks a container's Pebble. The result of its answer as JSON; NULL: it failed, and so has the hook.
const char *periapt_pebble_get(const char *container, const char *path);
const char *periapt_pebble_post(const char *container, const char *path, const char *json);
bool periapt_pebble_exchange(const char *container, const periapt_request *request, periapt_response *response);
const char *periapt_pebble_answer(const char *container, const periapt_response *response);
// Opens a stream to a container's Pebble; false: the hook has failed.
bool periapt_pebble_connect(const char *container, uint32_t *stream);
// Asks for a change: the whole answer. Waits for its end: the change. NULL: the hook has failed.
const char *periapt_pebble_asked(const char *container, const char *path, const char *json);
const char *periapt_pebble_ended(const char *container, const char *begun, const char *action);
void periapt_pebble_told(const char *container, const char *error, unsigned status);

#endif
