// The argv door, and the texts of its JSON.
#include <string.h>

#include "internal.h"

#define MAX_ARGUMENTS 64

const char *periapt_tool(const char *const arguments[]) {
  if (periapt_failed()) return NULL;
  charm_string_t words[MAX_ARGUMENTS];
  size_t count = 0;
  while (arguments[count + 1] != NULL) {
    if (count == MAX_ARGUMENTS) {
      periapt_fail("%s: more than %d arguments", arguments[0], MAX_ARGUMENTS);
      return NULL;
    }
    words[count] = periapt_lent(arguments[count + 1]);
    count++;
  }
  charm_string_t name = periapt_lent(arguments[0]);
  charm_list_string_t list = {words, count};
  periapt_charm_hook_tools_output_t output;
  periapt_charm_hook_tools_run(&name, &list, NULL, &output);
  charm_string_t said = output.exit_code == 0 ? (charm_string_t){output.stdout_.ptr, output.stdout_.len}
                                              : (charm_string_t){output.stderr_.ptr, output.stderr_.len};
  if (said.len > 0 && said.ptr[said.len - 1] == '\n') said.len--;
  const char *text = periapt_copied(&said);
  if (output.exit_code == 0) return text;
  bool is_marked = strncmp(text, "ERROR ", 6) == 0;
  const char *message = periapt_text("%s: %s", arguments[0], text + (is_marked ? 6 : 0));
  periapt_fail_with(output.exit_code, PERIAPT_OTHER_FAILURE, message);
  return NULL;
}

// Four hex digits; -1 if they are not.
static int32_t hex4(const char *digits) {
  int32_t value = 0;
  for (int i = 0; i < 4; i++) {
    char c = digits[i];
    int32_t digit = -1;
    if (c >= '0' && c <= '9') digit = c - '0';
    if (c >= 'a' && c <= 'f') digit = c - 'a' + 10;
    if (c >= 'A' && c <= 'F') digit = c - 'A' + 10;
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

const char *periapt_json_text(const char *json) {
  if (json == NULL || *json++ != '"') return NULL;
  // No escape is shorter than what it stands for.
  char *string = periapt_memory(strlen(json) + 1), *out = string;
  while (*json != '"') {
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    char c = *json++;
    if (c == '\0') return NULL;
    if (c != '\\') {
      *out++ = c;
      continue;
    }
    c = *json++;
    if (c == 'u') {
      int32_t point = code_point(&json);
      if (point < 0) return NULL;
      out = put_utf8(out, point);
    } else {
      const char *escape = c == '\0' ? NULL : strchr(from, c);
      if (escape == NULL) return NULL;
      *out++ = to[escape - from];
    }
  }
  if (json[1] != '\0') return NULL;
  *out = '\0';
  return string;
}
