// The client of a container's Pebble: requests and answers, services, checks and notices.
#include <string.h>

#include "internal.h"

// A plan may have some MiB, and so may a file.
#define MAX_ANSWER (8u << 20)
#define MAX_PAGE (4u << 20)
// The end of a change is waited for so often, and each time so many seconds: the host ends a request that is silent for longer.
#define WAITS 8
#define WAIT_SECONDS 4

bool periapt_pebble_connect(const char *container, uint32_t *stream) {
  if (periapt_failed()) return false;
  periapt_charm_workloads_target_t target = {.tag = PERIAPT_CHARM_WORKLOADS_TARGET_PEBBLE};
  target.val.pebble = periapt_lent(container);
  periapt_charm_types_error_t error;
  if (periapt_charm_workloads_connect(&target, stream, &error)) return true;
  periapt_refused(periapt_text("container \"%s\"", container), &error);
  return false;
}

bool periapt_pebble_exchange(const char *container, const periapt_request *request, periapt_response *response) {
  uint32_t stream;
  if (!periapt_pebble_connect(container, &stream)) return false;
  const char *failed = periapt_exchange(stream, request, MAX_ANSWER, response);
  periapt_charm_workloads_close(stream);
  if (failed != NULL) periapt_pebble_failed(container, "broken", failed, 0);
  return failed == NULL;
}

periapt_page periapt_workload_page(uint16_t port, const char *path) {
  periapt_page none = {0, {NULL, 0}};
  if (periapt_failed()) return none;
  periapt_charm_workloads_target_t target = {.tag = PERIAPT_CHARM_WORKLOADS_TARGET_PORT};
  target.val.port = port;
  uint32_t stream;
  periapt_charm_types_error_t error;
  if (!periapt_charm_workloads_connect(&target, &stream, &error)) {
    periapt_refused(periapt_text("port %u", (unsigned)port), &error);
    return none;
  }
  periapt_request request = {"GET", path, "text/plain", {NULL, 0}};
  periapt_response response;
  const char *failed = periapt_exchange(stream, &request, MAX_PAGE, &response);
  periapt_charm_workloads_close(stream);
  if (failed != NULL) periapt_fail("port %u: %s", (unsigned)port, failed);
  return failed != NULL ? none : (periapt_page){(int)response.status, response.body};
}

void periapt_pebble_told(const char *container, const char *error, unsigned status) {
  const char *kind = periapt_json_string(periapt_json_member(error, "kind"));
  const char *message = periapt_json_string(periapt_json_member(error, "message"));
  if (kind == NULL || *kind == '\0') kind = "api";
  periapt_pebble_failed(container, kind, message == NULL ? "it gives no reason" : message, status);
}

// The whole answer as JSON; NULL: it is a failure.
static const char *answered(const char *container, const periapt_response *response) {
  const char *answer = response->body.data, *result = periapt_json_member(answer, "result");
  bool is_success = response->status >= 200 && response->status < 300;
  if (result == NULL) {
    const char *message = periapt_text("its answer with status %u is unreadable", response->status);
    periapt_pebble_failed(container, "broken", message, 0);
    return NULL;
  }
  if (is_success) return answer;
  periapt_pebble_told(container, result, response->status);
  return NULL;
}

const char *periapt_pebble_answer(const char *container, const periapt_response *response) {
  return periapt_json_member(answered(container, response), "result");
}

const char *periapt_pebble_get(const char *container, const char *path) {
  periapt_request request = {"GET", path, "text/plain", {NULL, 0}};
  periapt_response response;
  if (!periapt_pebble_exchange(container, &request, &response)) return NULL;
  return periapt_pebble_answer(container, &response);
}

const char *periapt_pebble_asked(const char *container, const char *path, const char *json) {
  periapt_request request = {"POST", path, "application/json", {json, strlen(json)}};
  periapt_response response;
  if (!periapt_pebble_exchange(container, &request, &response)) return NULL;
  return answered(container, &response);
}

const char *periapt_pebble_post(const char *container, const char *path, const char *json) {
  return periapt_json_member(periapt_pebble_asked(container, path, json), "result");
}

bool periapt_pebble_can_connect(const char *container) {
  if (periapt_failed()) return false;
  bool is_there = periapt_pebble_get(container, "/v1/system-info") != NULL;
  if (!is_there) periapt_forgive();
  return is_there;
}

void periapt_pebble_add_layer(const char *container, const char *label, const char *layer) {
  static const char format[] = "{\"action\":\"add\",\"combine\":true,\"format\":\"yaml\",\"label\":%s,\"layer\":%s}";
  periapt_pebble_post(container, "/v1/layers", periapt_text(format, periapt_json_quoted(label), periapt_json_quoted(layer)));
}

const char *periapt_pebble_plan(const char *container) {
  return periapt_json_string(periapt_pebble_get(container, "/v1/plan?format=yaml"));
}

// What a change failed with, and what its tasks logged; NULL if it succeeded.
static const char *failure_of(const char *change) {
  if (periapt_is(periapt_json_string(periapt_json_member(change, "status")), "Done")) return NULL;
  const char *error = periapt_json_string(periapt_json_member(change, "err"));
  periapt_buffer text = {0};
  periapt_append_text(&text, error == NULL ? "the change failed" : error);
  const char *task = periapt_json_first(periapt_json_member(change, "tasks"));
  for (; task != NULL; task = periapt_json_next(task)) {
    const char *line = periapt_json_first(periapt_json_member(task, "log"));
    for (; line != NULL; line = periapt_json_next(line)) {
      const char *logged = periapt_json_string(line);
      if (logged == NULL) continue;
      periapt_append_text(&text, "\n");
      periapt_append_text(&text, logged);
    }
  }
  return periapt_finished(&text).data;
}

const char *periapt_pebble_ended(const char *container, const char *begun, const char *action) {
  const char *change = periapt_json_string(periapt_json_member(begun, "change"));
  if (change == NULL || *change == '\0' || strspn(change, "0123456789") != strlen(change)) {
    periapt_pebble_failed(container, "broken", periapt_text("%s began no change", action), 0);
    return NULL;
  }
  const char *path = periapt_text("/v1/changes/%s/wait?timeout=%ds", change, WAIT_SECONDS);
  for (int i = 0; i < WAITS; i++) {
    periapt_request request = {"GET", path, "text/plain", {NULL, 0}};
    periapt_response response;
    if (!periapt_pebble_exchange(container, &request, &response)) return NULL;
    // 504: it still goes on.
    if (response.status == 504) continue;
    const char *ended = periapt_pebble_answer(container, &response);
    const char *failure = ended == NULL ? NULL : failure_of(ended);
    if (failure != NULL) periapt_pebble_failed(container, "change-failed", failure, 0);
    return failure == NULL ? ended : NULL;
  }
  const char *message = periapt_text("%s still goes on after %d s", action, WAITS * WAIT_SECONDS);
  periapt_pebble_failed(container, "timeout", message, 0);
  return NULL;
}

// Asks for a change of services, and waits for its end.
static void act(const char *container, const char *action, const char *service) {
  const char *services = service == NULL ? "" : periapt_json_quoted(service);
  const char *body = periapt_text("{\"action\":\"%s\",\"services\":[%s]}", action, services);
  const char *begun = periapt_pebble_asked(container, "/v1/services", body);
  if (begun != NULL) periapt_pebble_ended(container, begun, action);
}

void periapt_pebble_replan(const char *container) { act(container, "replan", NULL); }
void periapt_pebble_start(const char *container, const char *service) { act(container, "start", service); }
void periapt_pebble_stop(const char *container, const char *service) { act(container, "stop", service); }
void periapt_pebble_restart(const char *container, const char *service) { act(container, "restart", service); }

void periapt_pebble_send_signal(const char *container, const char *signal, const char *service) {
  const char *names = periapt_text("\"signal\":%s,\"services\":[%s]", periapt_json_quoted(signal), periapt_json_quoted(service));
  periapt_pebble_post(container, "/v1/signals", periapt_text("{%s}", names));
}

// A member of the entry with a name in a list.
static const char *listed(const char *container, const char *path, const char *name, const char *member) {
  const char *entry = periapt_json_first(periapt_pebble_get(container, path));
  for (; entry != NULL; entry = periapt_json_next(entry)) {
    if (periapt_is(periapt_json_string(periapt_json_member(entry, "name")), name)) {
      return periapt_json_string(periapt_json_member(entry, member));
    }
  }
  return NULL;
}

const char *periapt_pebble_service(const char *container, const char *service) {
  return listed(container, "/v1/services", service, "current");
}

const char *periapt_pebble_check(const char *container, const char *check) {
  return listed(container, "/v1/checks", check, "status");
}

static bool act_on_check(const char *container, const char *action, const char *check) {
  const char *body = periapt_text("{\"action\":\"%s\",\"checks\":[%s]}", action, periapt_json_quoted(check));
  const char *result = periapt_pebble_post(container, "/v1/checks", body);
  return periapt_json_first(periapt_json_member(result, "changed")) != NULL;
}

bool periapt_pebble_start_check(const char *container, const char *check) { return act_on_check(container, "start", check); }
bool periapt_pebble_stop_check(const char *container, const char *check) { return act_on_check(container, "stop", check); }

void periapt_pebble_notify(const char *container, const char *key) {
  static const char format[] = "{\"action\":\"add\",\"type\":\"custom\",\"key\":%s}";
  periapt_pebble_post(container, "/v1/notices", periapt_text(format, periapt_json_quoted(key)));
}

const char *periapt_pebble_notice(const char *container, const char *id, const char *name) {
  const char *notice = periapt_pebble_get(container, periapt_text("/v1/notices/%s", periapt_encoded(id)));
  return periapt_json_string(periapt_json_member(periapt_json_member(notice, "last-data"), name));
}
