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

#endif
