// Hook tools, as a shell would call them.
#ifndef HELLO_TOOLS_H
#define HELLO_TOOLS_H

#include <stdbool.h>
#include <stdint.h>

// The first tool that failed in this hook; later calls do nothing, so that a charm checks once, at the end.
struct tool_failure {
  int32_t code;
  char *message;
};

extern struct tool_failure tool_failure;

// Forgets the failure of an earlier hook.
void tools_begin(void);

// Runs `args[0]` with the rest as arguments, up to a NULL. What it printed, without the last newline; the caller frees it.
// NULL after a failure.
char *tool(const char *const args[]);

// `tool` for those whose output does not matter.
bool tool_done(const char *const args[]);

// Text from a JSON text: a string's content, or "" for null. NULL if it is neither; the caller frees it.
char *json_string(const char *json);

// printf into memory of its own; the caller frees it. Traps if there is none left.
char *text(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
