// Streams between a charm under test and workloads in memory.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host.h"

static char *joined(const char *one, size_t length, const char *other, size_t more) {
  char *both = malloc(length + more + 1);
  if (both == NULL) abort();
  if (length > 0) memcpy(both, one, length);
  if (more > 0) memcpy(both + length, other, more);
  both[length + more] = '\0';
  return both;
}

static void respond(struct stream *stream, unsigned status, const char *kind, const char *body, size_t length) {
  char head[300];
  int size = snprintf(head, sizeof head, "HTTP/1.1 %u X\r\nContent-Type: %s\r\nContent-Length: %zu\r\n\r\n", status, kind, length);
  stream->answer = joined(head, (size_t)size, body, length);
  stream->answer_length = (size_t)size + length;
  stream->is_over = true;
}

// Answers a request that is whole.
static void answer(struct stream *stream) {
  const char *end = stream->sent == NULL ? NULL : strstr(stream->sent, "\r\n\r\n");
  if (end == NULL) return;
  const char *said = strstr(stream->sent, "\r\nContent-Length: "), *body = end + 4;
  size_t length = said == NULL || said > end ? 0 : strtoul(said + 18, NULL, 10);
  if (stream->sent_length - (size_t)(body - stream->sent) < length) return;
  char method[10], path[2000];
  if (sscanf(stream->sent, "%9s %1999s", method, path) != 2) abort();
  if (stream->container == NULL) {
    const char *page = strchr(stream->page, ' ');
    if (page == NULL) host_inconsistent("a page is a status and a body, not \"%s\"", stream->page);
    respond(stream, (unsigned)strtoul(stream->page, NULL, 10), "text/plain", page + 1, strlen(page + 1));
  } else if (stream->container->sends != NULL) {
    stream->answer = joined(stream->container->sends, stream->container->sends_length, "", 0);
    stream->answer_length = stream->container->sends_length;
    stream->is_over = true;
  } else if (strstr(path, "/websocket/") != NULL) {
    static const char accept[] = "HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                                 "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
    stream->websocket = (const char *)host_string(strrchr(path, '/') + 1).ptr;
    stream->answer = joined(accept, sizeof accept - 1, "", 0);
    stream->answer_length = sizeof accept - 1;
    stream->sent_length = 0;
    if (stream->container->frames != NULL) {
      stream->answer = joined(accept, sizeof accept - 1, stream->container->frames, stream->container->frames_length);
      stream->answer_length += stream->container->frames_length;
      stream->is_over = true;
    }
  } else {
    struct host_reply reply = host_pebble(stream->container, method, path, body, length);
    respond(stream, reply.status, reply.kind, reply.body, reply.length);
  }
}

// Adds the frames of an output and of its end to the answer.
static void add_frames(struct stream *stream, const char *output, size_t length) {
  static const char end[] = "\x81\x11{\"command\":\"end\"}";
  for (size_t at = 0; at < length;) {
    size_t size = length - at < 30000 ? length - at : 30000;
    char head[4] = {(char)0x82, 126, (char)(size >> 8), (char)(size & 255)};
    stream->answer = joined(stream->answer, stream->answer_length, head, 4);
    stream->answer = joined(stream->answer, stream->answer_length + 4, output + at, size);
    stream->answer_length += 4 + size;
    at += size;
  }
  stream->answer = joined(stream->answer, stream->answer_length, end, sizeof end - 1);
  stream->answer_length += sizeof end - 1;
}

// Takes the frames of a command's input. Its end runs the command.
static void take_frames(struct stream *stream) {
  for (;;) {
    const unsigned char *bytes = (const unsigned char *)stream->sent;
    if (stream->sent_length < 6) return;
    bool is_long = (bytes[1] & 127) == 126;
    size_t head = is_long ? 8 : 6, length = is_long ? (size_t)bytes[2] << 8 | bytes[3] : bytes[1] & 127u;
    if (stream->sent_length < head + length) return;
    // The SDK's mask changes nothing.
    if ((bytes[0] & 15) == 2) {
      stream->input = joined(stream->input, stream->input_length, (const char *)bytes + head, length);
      stream->input_length += length;
    } else if (strcmp(stream->websocket, "stdio") == 0) {
      host_run(stream->container, stream->input, stream->input_length);
      add_frames(stream, stream->container->output.out, stream->container->output.length);
    }
    stream->sent_length -= head + length;
    memmove(stream->sent, stream->sent + head + length, stream->sent_length);
  }
}

static struct stream *opened(uint32_t number, periapt_charm_types_error_t *error) {
  if (number > 0 && number <= HOST_MAX_STREAMS && host.streams[number].is_open) return &host.streams[number];
  host_refuse(error, PERIAPT_CHARM_TYPES_ERROR_NOT_FOUND, "stream %u is not open", (unsigned)number);
  return NULL;
}

bool periapt_charm_workloads_connect(periapt_charm_workloads_target_t *target, uint32_t *ret,
                                     periapt_charm_types_error_t *error) {
  struct stream made = {.is_open = true};
  char name[300];
  if (target->tag == PERIAPT_CHARM_WORKLOADS_TARGET_PEBBLE) {
    snprintf(name, sizeof name, "%s", host_text(&target->val.pebble));
    for (size_t i = 0; i < host.container_count; i++) {
      if (strcmp(host.containers[i].name, name) == 0) made.container = &host.containers[i];
    }
  } else {
    snprintf(name, sizeof name, "%u", (unsigned)target->val.port);
    made.page = host_find(&host.pages, "", name);
  }
  if (made.container == NULL && made.page == NULL) {
    const char *what = target->tag == PERIAPT_CHARM_WORKLOADS_TARGET_PORT ? "port " : "";
    return host_refuse(error, PERIAPT_CHARM_TYPES_ERROR_NOT_READY,
                       "nobody listens: the test has not started %s%s beside the unit in memory", what, name);
  }
  for (uint32_t number = 1; number <= HOST_MAX_STREAMS; number++) {
    if (host.streams[number].is_open) continue;
    host.streams[number] = made;
    *ret = number;
    return true;
  }
  return host_refuse(error, PERIAPT_CHARM_TYPES_ERROR_LIMIT_EXCEEDED, "more than %d streams are open at a time",
                     HOST_MAX_STREAMS);
}

bool periapt_charm_workloads_read(uint32_t number, uint32_t most, uint32_t *timeout,
                                  periapt_charm_workloads_received_t *ret, periapt_charm_types_error_t *error) {
  struct stream *stream = opened(number, error);
  if (stream == NULL) return false;
  // What a command printed to standard error comes once it has run.
  if (stream->websocket != NULL && strcmp(stream->websocket, "stderr") == 0 && stream->container->has_run) {
    add_frames(stream, stream->container->output.err, strlen(stream->container->output.err));
    stream->container->has_run = false;
  }
  size_t left = stream->answer_length - stream->taken, length = left < most ? left : most;
  if (length > 0) {
    ret->tag = PERIAPT_CHARM_WORKLOADS_RECEIVED_BYTES;
    ret->val.bytes.ptr = (uint8_t *)joined(stream->answer + stream->taken, length, "", 0);
    ret->val.bytes.len = length;
    stream->taken += length;
    return true;
  }
  if (!stream->is_over && timeout == NULL) {
    return host_refuse(error, PERIAPT_CHARM_TYPES_ERROR_FAILED,
                       "the workload in memory sends nothing: the hook would wait for ever");
  }
  ret->tag = stream->is_over ? PERIAPT_CHARM_WORKLOADS_RECEIVED_END : PERIAPT_CHARM_WORKLOADS_RECEIVED_NOTHING;
  return true;
}

bool periapt_charm_workloads_write(uint32_t number, charm_list_u8_t *bytes, uint32_t *timeout, uint32_t *ret,
                                   periapt_charm_types_error_t *error) {
  (void)timeout;
  struct stream *stream = opened(number, error);
  if (stream == NULL) return false;
  stream->sent = joined(stream->sent, stream->sent_length, (const char *)bytes->ptr, bytes->len);
  stream->sent_length += bytes->len;
  *ret = (uint32_t)bytes->len;
  if (stream->websocket != NULL && stream->container->frames == NULL) take_frames(stream);
  if (stream->websocket == NULL) answer(stream);
  return true;
}

bool periapt_charm_workloads_shutdown(uint32_t number, periapt_charm_types_error_t *error) {
  return opened(number, error) != NULL;
}

void periapt_charm_workloads_close(uint32_t number) {
  if (number > 0 && number <= HOST_MAX_STREAMS) host.streams[number].is_open = false;
}

void charm_list_u8_free(charm_list_u8_t *ptr) {
  free(ptr->ptr);
  *ptr = (charm_list_u8_t){NULL, 0};
}
