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
  } else {
    struct host_reply reply = host_pebble(stream->container, method, path, body, length);
    respond(stream, reply.status, reply.kind, reply.body, reply.length);
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
  answer(stream);
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
