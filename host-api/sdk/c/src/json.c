// JSON, as far as Pebble's answers need it: values are pointers into a text that ends with NUL.
#include <string.h>

#include "internal.h"

// How deep values lie in each other at most. A peer that says more is a stranger to what is asked for.
#define MAX_DEPTH 64

static const char *spaces(const char *at) { return at + strspn(at, " \t\r\n"); }

// Moves past a text; NULL: it has no end.
static const char *past_text(const char *at) {
  for (at++; *at != '"'; at++) {
    if (*at == '\\') at++;
    if (*at == '\0') return NULL;
  }
  return at + 1;
}

// Moves past a value; NULL: it is none.
static const char *past(const char *at) {
  char open[MAX_DEPTH];
  size_t depth = 0;
  do {
    at = spaces(at);
    switch (*at) {
      case '"':
        at = past_text(at);
        if (at == NULL) return NULL;
        break;
      case '{':
      case '[':
        if (depth == MAX_DEPTH) return NULL;
        open[depth++] = *at++ == '{' ? '}' : ']';
        break;
      case '}':
      case ']':
        if (depth == 0 || open[--depth] != *at) return NULL;
        at++;
        break;
      case ',':
      case ':':
        if (depth == 0) return NULL;
        at++;
        break;
      default: {
        size_t length = strspn(at, "+-.0123456789abcdefghijklmnopqrstuvwxyzE");
        if (length == 0) return NULL;
        at += length;
      }
    }
  } while (depth > 0);
  return at;
}

const char *periapt_json_member(const char *value, const char *key) {
  if (value == NULL || *(value = spaces(value)) != '{') return NULL;
  size_t length = strlen(key);
  for (value = spaces(value + 1); *value == '"'; value = spaces(value + 1)) {
    const char *name = value + 1, *end = past_text(value);
    if (end == NULL || *(end = spaces(end)) != ':') return NULL;
    const char *member = spaces(end + 1);
    if (strncmp(name, key, length) == 0 && name[length] == '"') return past(member) == NULL ? NULL : member;
    value = past(member);
    if (value == NULL || *(value = spaces(value)) != ',') return NULL;
  }
  return NULL;
}

const char *periapt_json_first(const char *value) {
  if (value == NULL || *(value = spaces(value)) != '[') return NULL;
  value = spaces(value + 1);
  return past(value) == NULL ? NULL : value;
}

const char *periapt_json_next(const char *element) {
  const char *end = past(element);
  if (end == NULL || *(end = spaces(end)) != ',') return NULL;
  end = spaces(end + 1);
  return past(end) == NULL ? NULL : end;
}

const char *periapt_json_string(const char *value) {
  if (value == NULL || *value != '"') return NULL;
  const char *end = past_text(value);
  if (end == NULL) return NULL;
  charm_string_t text = {(uint8_t *)value, (size_t)(end - value)};
  return periapt_json_text(periapt_copied(&text));
}

const char *periapt_json_quoted(const char *text) {
  periapt_buffer quoted = {0};
  periapt_append_text(&quoted, "\"");
  for (; *text != '\0'; text++) {
    if (*text == '"' || *text == '\\') periapt_append_text(&quoted, "\\");
    if ((unsigned char)*text < ' ') periapt_append_text(&quoted, periapt_text("\\u%04x", (unsigned)*text));
    else periapt_append(&quoted, text, 1);
  }
  periapt_append_text(&quoted, "\"");
  return periapt_finished(&quoted).data;
}
