#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

void *periapt_memory(size_t size) {
  void *place = malloc(size == 0 ? 1 : size);
  if (place == NULL) __builtin_trap();
  return place;
}

charm_string_t periapt_lent(const char *text) {
  const char *given = text == NULL ? "" : text;
  return (charm_string_t){(uint8_t *)given, strlen(given)};
}

const char *periapt_copied(const charm_string_t *string) {
  char *copy = periapt_memory(string->len + 1);
  if (string->len > 0) memcpy(copy, string->ptr, string->len);
  copy[string->len] = '\0';
  return copy;
}

const char *periapt_formatted(const char *format, va_list arguments) {
  va_list again;
  va_copy(again, arguments);
  int length = vsnprintf(NULL, 0, format, arguments);
  if (length < 0) __builtin_trap();
  char *text = periapt_memory((size_t)length + 1);
  vsnprintf(text, (size_t)length + 1, format, again);
  va_end(again);
  return text;
}

const char *periapt_text(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const char *text = periapt_formatted(format, arguments);
  va_end(arguments);
  return text;
}

bool periapt_is(const char *text, const char *other) {
  if (text == NULL || other == NULL) return text == other;
  return strcmp(text, other) == 0;
}
