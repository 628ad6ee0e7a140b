#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host.h"
#include "periapt_test.h"

void pt_container(const char *name) {
  if (host.container_count == HOST_MAX_CONTAINERS) abort();
  host.containers[host.container_count++].name = name;
}

void pt_file(const char *container, const char *path, const char *content) {
  host_write(host_container(container), path, content, strlen(content), false);
}

void pt_service(const char *container, const char *service, const char *state) {
  host_put(&host_container(container)->services, "", service, state);
}

void pt_check(const char *container, const char *check, const char *state) {
  host_put(&host_container(container)->checks, "", check, state);
}

void pt_plan(const char *container, const char *yaml) { host_container(container)->plan = yaml; }

void pt_answer(const char *container, const char *path, const char *answer) {
  host_put(&host_container(container)->answers, "", path, answer);
}

void pt_sends(const char *container, const char *bytes, size_t length) {
  struct container *it = host_container(container);
  it->sends = bytes;
  it->sends_length = length;
}

void pt_runs(const char *container, pt_output (*run)(const char *const command[], const char *input, size_t length)) {
  host_container(container)->run = run;
}

void pt_page(uint16_t port, const char *page) {
  char name[10];
  snprintf(name, sizeof name, "%u", (unsigned)port);
  host_put(&host.pages, "", (const char *)host_string(name).ptr, page);
}

bool pt_pebble_ready(const char *container) {
  exports_periapt_charm_handler_invocation_t it = {.event.tag = PERIAPT_CHARM_TYPES_EVENT_PEBBLE_READY};
  it.event.val.pebble_ready.workload = host_string(host_container(container)->name);
  return pt_event(&it);
}

bool pt_custom_notice(const char *container, const char *id, const char *key) {
  exports_periapt_charm_handler_invocation_t it = {.event.tag = PERIAPT_CHARM_TYPES_EVENT_PEBBLE_CUSTOM_NOTICE};
  it.event.val.pebble_custom_notice = (periapt_charm_types_workload_notice_event_t){
      host_string(host_container(container)->name), host_string(id), host_string("custom"), host_string(key)};
  return pt_event(&it);
}

bool pt_check_failed(const char *container, const char *check) {
  exports_periapt_charm_handler_invocation_t it = {.event.tag = PERIAPT_CHARM_TYPES_EVENT_PEBBLE_CHECK_FAILED};
  it.event.val.pebble_check_failed =
      (periapt_charm_types_workload_check_event_t){host_string(host_container(container)->name), host_string(check)};
  return pt_event(&it);
}

bool pt_check_recovered(const char *container, const char *check) {
  exports_periapt_charm_handler_invocation_t it = {.event.tag = PERIAPT_CHARM_TYPES_EVENT_PEBBLE_CHECK_RECOVERED};
  it.event.val.pebble_check_recovered =
      (periapt_charm_types_workload_check_event_t){host_string(host_container(container)->name), host_string(check)};
  return pt_event(&it);
}

const char *pt_pushed(const char *container, const char *path) {
  const struct container *it = host_container(container);
  for (size_t i = 0; i < it->file_count; i++) {
    if (strcmp(it->files[i].path, path) == 0 && !it->files[i].is_directory) return it->files[i].data;
  }
  return NULL;
}

const char *pt_layer(const char *container, const char *label) {
  return host_find(&host_container(container)->layers, "", label);
}

const char *pt_actions(const char *container) { return host_container(container)->actions; }
