#include "internal.h"

// The first failure of the hook; no message: there was none.
static struct {
  int32_t code;
  periapt_reason reason;
  const char *message;
  // Of a Pebble.
  const char *kind;
} failure = {0, PERIAPT_NO_REASON, NULL, NULL};

void periapt_begin(void) { periapt_forgive(); }

void periapt_forgive(void) {
  failure.code = 0;
  failure.reason = PERIAPT_NO_REASON;
  failure.message = NULL;
  failure.kind = NULL;
}

bool periapt_failed(void) { return failure.message != NULL; }

periapt_reason periapt_why(void) { return failure.reason; }

const char *periapt_failure(void) { return failure.message; }

int32_t periapt_exit_code(void) { return failure.code; }

void periapt_fail_with(int32_t code, periapt_reason reason, const char *message) {
  if (periapt_failed()) return;
  failure.code = code;
  failure.reason = reason;
  failure.message = message;
}

const char *periapt_pebble_kind(void) { return failure.kind; }

void periapt_pebble_failed(const char *container, const char *kind, const char *message, unsigned status) {
  if (periapt_failed()) return;
  const char *shown = status == 0 ? "" : periapt_text(" (status %u)", status);
  periapt_fail_with(1, PERIAPT_PEBBLE, periapt_text("container \"%s\": %s%s", container, message, shown));
  failure.kind = kind;
}

void periapt_fail(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  periapt_fail_with(1, PERIAPT_NO_REASON, periapt_formatted(format, arguments));
  va_end(arguments);
}

void periapt_refused(const char *what, const periapt_charm_types_error_t *error) {
  // All cases but the last hold one text, at one place.
  bool is_other = error->tag == PERIAPT_CHARM_TYPES_ERROR_OTHER;
  const charm_string_t *said = is_other ? &error->val.other.f1 : &error->val.failed;
  periapt_fail_with(1, (periapt_reason)error->tag, periapt_text("%s: %s", what, periapt_copied(said)));
}
