// Commands in a container: a websocket (RFC 6455) for input and output, one for errors, and one for orders.
#include <stdlib.h>
#include <string.h>

#include "internal.h"

// The most bytes of each output, and of a frame that is read: Pebble sends some tens of KiB at once.
#define MAX_OUTPUT (8u << 20)
#define MAX_FRAME (1u << 20)
// The bytes of a frame that is sent, and of a call that may send few of them.
#define PIECE (32u << 10)
#define MAX_TRIED (64u << 10)
// The longest pause between two looks at the streams, in milliseconds.
#define MAX_PAUSE 200u

enum { CONTINUED = 0, TEXT = 1, BINARY = 2, CLOSE = 8 };

struct socket {
  uint32_t stream;
  bool is_open, is_over;
  periapt_buffer received, text, output;
  // The kind of the message that the last frame began.
  unsigned message;
};

// What went wrong with a frame; NULL: nothing.
static const char *frame(struct socket *it, unsigned kind, bool is_last, const char *payload, size_t length) {
  if (kind == CLOSE) it->is_over = true;
  // Pings and pongs need no answer here.
  if (kind >= CLOSE || it->is_over) return NULL;
  if (kind != CONTINUED) it->message = kind;
  bool is_text = it->message == TEXT;
  periapt_buffer *into = is_text ? &it->text : &it->output;
  if (length > (is_text ? MAX_FRAME : MAX_OUTPUT) - into->length) return "the command printed more than 8388608 bytes";
  periapt_append(into, payload, length);
  if (is_text && is_last) {
    it->is_over = periapt_is(periapt_json_string(periapt_json_member(it->text.data, "command")), "end");
    it->text.length = 0;
  }
  return NULL;
}

// Takes the frames that are whole; what went wrong, or NULL.
static const char *take(struct socket *it) {
  size_t at = 0;
  const char *error = NULL;
  while (error == NULL && it->received.length - at >= 2) {
    const unsigned char *bytes = (const unsigned char *)it->received.data + at;
    size_t there = it->received.length - at, head = bytes[1] == 127 ? 10 : bytes[1] == 126 ? 4 : 2;
    unsigned kind = bytes[0] & 15u;
    // Servers mask nothing, and extensions were not asked for.
    if ((bytes[0] & 0x70) != 0 || (bytes[1] & 0x80) != 0 || (kind > BINARY && kind < CLOSE) || kind > 10) {
      error = "a frame of the websocket is malformed";
      break;
    }
    if (there < head) break;
    uint64_t length = head == 2 ? bytes[1] : 0;
    for (size_t i = 2; i < head; i++) length = length << 8 | bytes[i];
    if (length > MAX_FRAME) {
      error = "a frame of the websocket has more than 1048576 bytes";
      break;
    }
    if (there - head < length) break;
    error = frame(it, kind, (bytes[0] & 0x80) != 0, (const char *)bytes + head, (size_t)length);
    at += head + (size_t)length;
  }
  if (at > 0) {
    memmove(it->received.data, it->received.data + at, it->received.length - at);
    it->received.length -= at;
  }
  return error;
}

// Waits for bytes, and says whether some came, or the end.
static const char *receive(struct socket *it, uint32_t milliseconds, bool *has_come) {
  periapt_charm_workloads_received_t received;
  periapt_charm_types_error_t error;
  if (!periapt_charm_workloads_read(it->stream, MAX_TRIED, &milliseconds, &received, &error)) return periapt_said(&error);
  if (received.tag == PERIAPT_CHARM_WORKLOADS_RECEIVED_NOTHING) return NULL;
  *has_come = true;
  if (received.tag == PERIAPT_CHARM_WORKLOADS_RECEIVED_END) {
    it->is_over = true;
    return NULL;
  }
  periapt_append(&it->received, received.val.bytes.ptr, received.val.bytes.len);
  charm_list_u8_free(&received.val.bytes);
  return take(it);
}

static void append_frame(periapt_buffer *frames, unsigned kind, const char *payload, size_t length) {
  unsigned char head[4] = {(unsigned char)(0x80u | kind), (unsigned char)(0x80u | length)};
  size_t size = 2;
  if (length > 125) {
    head[1] = 0x80 | 126;
    head[2] = (unsigned char)(length >> 8);
    head[3] = (unsigned char)(length & 255);
    size = 4;
  }
  periapt_append(frames, head, size);
  // Clients mask what they send. This mask changes nothing: no proxy reads along that it would have to mislead.
  periapt_append(frames, "\0\0\0\0", 4);
  periapt_append(frames, payload, length);
}

// The frames of an input and of its end.
static periapt_buffer framed(periapt_bytes input) {
  periapt_buffer frames = {0};
  for (size_t at = 0; at < input.length;) {
    size_t left = input.length - at, length = left < PIECE ? left : PIECE;
    append_frame(&frames, BINARY, input.data + at, length);
    at += length;
  }
  static const char end[] = "{\"command\":\"end\"}";
  append_frame(&frames, TEXT, end, strlen(end));
  return frames;
}

// Sends as many bytes as go at once; how many did.
static size_t send_some(const struct socket *it, const char *bytes, size_t length) {
  charm_list_u8_t piece = {(uint8_t *)bytes, length < MAX_TRIED ? length : MAX_TRIED};
  uint32_t written, at_once = 0;
  periapt_charm_types_error_t error;
  // A command that has ended reads no more. What it printed comes all the same.
  if (!periapt_charm_workloads_write(it->stream, &piece, &at_once, &written, &error)) return length;
  return written < piece.len ? written : piece.len;
}

// Sends the input and receives both outputs, to their ends: a command may print before it has read all.
static const char *carry(struct socket *stdio, struct socket *errors, periapt_bytes input) {
  periapt_buffer frames = framed(input);
  const char *error = NULL;
  size_t sent = 0;
  for (uint32_t pause = 0; error == NULL && !(stdio->is_over && errors->is_over);) {
    bool is_moving = false;
    if (sent < frames.length && !stdio->is_over) {
      size_t some = send_some(stdio, frames.data + sent, frames.length - sent);
      sent += some;
      is_moving = some > 0;
    }
    // The wait is for one of them: the other is looked at soon enough.
    uint32_t wait = stdio->is_over ? pause : 0;
    if (!stdio->is_over) error = receive(stdio, pause, &is_moving);
    if (error == NULL && !errors->is_over) error = receive(errors, wait, &is_moving);
    pause = is_moving ? 0 : pause * 2 + 1 < MAX_PAUSE ? pause * 2 + 1 : MAX_PAUSE;
  }
  free(frames.data);
  return error;
}

// Opens a websocket of a task; false: the hook has failed.
static bool open_socket(const char *container, const char *task, const char *name, struct socket *it) {
  it->message = BINARY;
  it->is_open = periapt_pebble_connect(container, &it->stream);
  if (!it->is_open) return false;
  const char *error = periapt_upgrade(it->stream, periapt_text("/v1/tasks/%s/websocket/%s", task, name), &it->received);
  if (error == NULL) error = take(it);
  if (error != NULL) periapt_pebble_failed(container, "broken", error, 0);
  return error == NULL;
}

static const char *begin(const char *container, const char *const command[], unsigned seconds) {
  periapt_buffer words = {0};
  for (size_t i = 0; command[i] != NULL; i++) {
    if (i > 0) periapt_append_text(&words, ",");
    periapt_append_text(&words, periapt_json_quoted(command[i]));
  }
  const char *limit = seconds == 0 ? "" : periapt_text(",\"timeout\":\"%us\"", seconds);
  const char *all = periapt_finished(&words).data;
  return periapt_pebble_asked(container, "/v1/exec", periapt_text("{\"split-stderr\":true%s,\"command\":[%s]}", limit, all));
}

periapt_output periapt_pebble_exec(const char *container, const char *const command[], periapt_bytes input, unsigned seconds) {
  periapt_output none = {-1, {NULL, 0}, {NULL, 0}};
  const char *begun = begin(container, command, seconds);
  if (begun == NULL) return none;
  const char *task = periapt_json_string(periapt_json_member(periapt_json_member(begun, "result"), "task-id"));
  if (task == NULL || *task == '\0' || strspn(task, "0123456789") != strlen(task)) {
    periapt_pebble_failed(container, "broken", "exec began no task", 0);
    return none;
  }
  struct socket control = {0}, stdio = {0}, errors = {0};
  if (open_socket(container, task, "control", &control) && open_socket(container, task, "stdio", &stdio) &&
      open_socket(container, task, "stderr", &errors)) {
    const char *error = carry(&stdio, &errors, input);
    if (error != NULL) {
      periapt_pebble_failed(container, "broken", error, 0);
      static const char kill[] = "{\"command\":\"signal\",\"signal\":{\"name\":\"SIGKILL\"}}";
      periapt_buffer order = {0};
      append_frame(&order, TEXT, kill, strlen(kill));
      send_some(&control, order.data, order.length);
    }
  }
  // A command whose client is gone is killed: the sockets stay until it has ended.
  const char *ended = periapt_failed() ? NULL : periapt_pebble_ended(container, begun, "exec");
  struct socket *const all[] = {&control, &stdio, &errors};
  for (size_t i = 0; i < 3; i++) {
    if (all[i]->is_open) periapt_charm_workloads_close(all[i]->stream);
    free(all[i]->received.data);
  }
  if (periapt_failed()) return none;
  const char *first = periapt_json_first(periapt_json_member(ended, "tasks"));
  const char *code = periapt_json_member(periapt_json_member(first, "data"), "exit-code");
  if (code == NULL || strspn(code, "-0123456789") == 0) {
    periapt_pebble_failed(container, "broken", "the command ended without an exit code", 0);
    return none;
  }
  return (periapt_output){(int)strtol(code, NULL, 10), periapt_finished(&stdio.output), periapt_finished(&errors.output)};
}

const char *periapt_pebble_run(const char *container, const char *const command[]) {
  periapt_output output = periapt_pebble_exec(container, command, (periapt_bytes){NULL, 0}, 0);
  if (periapt_failed()) return NULL;
  if (output.code == 0) return output.out.data;
  const char *message = periapt_text("the command exited with code %d: %s", output.code, output.err.data);
  periapt_pebble_failed(container, "exit-code", message, 0);
  return NULL;
}
