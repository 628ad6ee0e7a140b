#include "tools.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bindings/hello.h"

#define MAX_ARGS 8

struct tool_failure tool_failure;

void tools_begin(void) {
  free(tool_failure.message);
  tool_failure = (struct tool_failure){0};
}

static void *memory(size_t size) {
  void *place = malloc(size);
  if (place == NULL) __builtin_trap();
  return place;
}

// A copy that ends with NUL, without the last newline.
static char *copy(const hello_list_u8_t *bytes) {
  size_t len = bytes->len;
  if (len > 0 && bytes->ptr[len - 1] == '\n') len--;
  char *copied = memory(len + 1);
  if (len > 0) memcpy(copied, bytes->ptr, len);
  copied[len] = '\0';
  return copied;
}

char *tool(const char *const args[]) {
  if (tool_failure.message != NULL) return NULL;

  hello_string_t name, words[MAX_ARGS];
  size_t count = 0;
  hello_string_set(&name, args[0]);
  while (args[count + 1] != NULL) {
    if (count == MAX_ARGS) __builtin_trap();
    hello_string_set(&words[count], args[count + 1]);
    count++;
  }
  hello_list_string_t list = {words, count};
  periapt_charm_hook_tools_output_t output;
  periapt_charm_hook_tools_run(&name, &list, NULL, &output);

  char *printed = NULL;
  if (output.exit_code == 0) {
    printed = copy(&output.stdout_);
  } else {
    char *complaint = copy(&output.stderr_);
    tool_failure.code = output.exit_code;
    bool marked = strncmp(complaint, "ERROR ", 6) == 0;
    tool_failure.message = text("%s: %s", args[0], complaint + (marked ? 6 : 0));
    free(complaint);
  }
  periapt_charm_hook_tools_output_free(&output);
  return printed;
}

bool tool_done(const char *const args[]) {
  char *printed = tool(args);
  free(printed);
  return printed != NULL;
}

// Four hex digits; -1 if they are not.
static int32_t hex4(const char *digits) {
  int32_t value = 0;
  for (int i = 0; i < 4; i++) {
    char c = digits[i];
    int32_t digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

static char *put_utf8(char *out, int32_t point) {
  if (point < 0x80) {
    *out++ = (char)point;
  } else if (point < 0x800) {
    *out++ = (char)(0xc0 | point >> 6);
    *out++ = (char)(0x80 | (point & 0x3f));
  } else if (point < 0x10000) {
    *out++ = (char)(0xe0 | point >> 12);
    *out++ = (char)(0x80 | (point >> 6 & 0x3f));
    *out++ = (char)(0x80 | (point & 0x3f));
  } else {
    *out++ = (char)(0xf0 | point >> 18);
    *out++ = (char)(0x80 | (point >> 12 & 0x3f));
    *out++ = (char)(0x80 | (point >> 6 & 0x3f));
    *out++ = (char)(0x80 | (point & 0x3f));
  }
  return out;
}

// Reads what follows `\u`, a pair of surrogates included, and moves the reader past it; -1 if it is no character.
static int32_t code_point(const char **in) {
  int32_t point = hex4(*in);
  if (point <= 0) return -1;
  *in += 4;
  if (point < 0xd800 || point > 0xdfff) return point;
  if (point > 0xdbff || (*in)[0] != '\\' || (*in)[1] != 'u') return -1;
  int32_t low = hex4(*in + 2);
  if (low < 0xdc00 || low > 0xdfff) return -1;
  *in += 6;
  return 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00);
}

char *json_string(const char *json) {
  if (strcmp(json, "null") == 0) return text("%s", "");
  if (*json++ != '"') return NULL;
  // No escape is shorter than what it stands for.
  char *string = memory(strlen(json) + 1), *out = string;
  while (*json != '"') {
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    char c = *json++;
    if (c == '\0') goto invalid;
    if (c != '\\') {
      *out++ = c;
      continue;
    }
    c = *json++;
    if (c == 'u') {
      int32_t point = code_point(&json);
      if (point < 0) goto invalid;
      out = put_utf8(out, point);
    } else {
      const char *escape = c == '\0' ? NULL : strchr(from, c);
      if (escape == NULL) goto invalid;
      *out++ = to[escape - from];
    }
  }
  if (json[1] != '\0') goto invalid;
  *out = '\0';
  return string;
invalid:
  free(string);
  return NULL;
}

char *text(const char *format, ...) {
  va_list args, again;
  va_start(args, format);
  va_copy(again, args);
  int len = vsnprintf(NULL, 0, format, args);
  if (len < 0) __builtin_trap();
  char *formatted = memory((size_t)len + 1);
  vsnprintf(formatted, (size_t)len + 1, format, again);
  va_end(args);
  va_end(again);
  return formatted;
}
