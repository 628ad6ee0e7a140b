// What cannot be: a test that sets it up would show nothing, so it ends. try-hook and the harnesses of the other SDKs refuse the
// same, in the same words (runtime/hook/tests/impossible.json).
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host.h"

void host_inconsistent(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fflush(stdout);
  fprintf(stderr, "inconsistent: ");
  vfprintf(stderr, format, arguments);
  fprintf(stderr, "\n");
  va_end(arguments);
  abort();
}

// How long the application is that a unit's name begins with; 0 if it begins with none.
static size_t app_length(const char *name) {
  size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-");
  return name[0] >= 'a' && name[0] <= 'z' ? length : 0;
}

void host_check_unit(const char *name) {
  size_t length = app_length(name);
  const char *number = name[length] == '/' ? name + length + 1 : "";
  if (length > 0 && *number != '\0' && number[strspn(number, "0123456789")] == '\0') return;
  bool has_app = length > 0 && (name[length] == '\0' || name[length] == '/');
  host_inconsistent("\"%s\" is no unit's name; one is written %.*s/0", name, has_app ? (int)length : 3, has_app ? name : "app");
}

struct relation *host_open_relation(uint32_t id) {
  if (id >= host.relation_count) host_inconsistent("there is no relation %u", (unsigned)id);
  if (!host.relations[id].is_there) host_inconsistent("relation %u is over; relate again for another", (unsigned)id);
  return &host.relations[id];
}

void host_check_remote(uint32_t id, const char *unit) {
  host_check_unit(unit);
  const char *remote = host_open_relation(id)->app;
  if (strcmp(unit, host.unit) == 0) {
    host_inconsistent("%s cannot be a remote unit of relation %u: it is the unit itself; name another unit of %s", unit,
                      (unsigned)id, remote);
  }
  if (strlen(remote) != app_length(unit) || strncmp(unit, remote, strlen(remote)) != 0) {
    host_inconsistent("%s cannot be a remote unit of relation %u: the remote application is %s; name a unit of %s", unit,
                      (unsigned)id, remote, remote);
  }
}

bool host_is_member(uint32_t id, const char *unit) {
  const struct relation *relation = host_open_relation(id);
  for (size_t i = 0; i < relation->member_count; i++) {
    if (strcmp(relation->members[i], unit) == 0) return true;
  }
  return false;
}

void host_check_member(uint32_t id, const char *unit) {
  host_check_remote(id, unit);
  if (!host_is_member(id, unit)) {
    host_inconsistent("%s is no member of relation %u; it has to join first", unit, (unsigned)id);
  }
}
