// Bytes that grow, and are searched.
#include <stdlib.h>
#include <string.h>

#include "internal.h"

void periapt_append(periapt_buffer *buffer, const void *bytes, size_t length) {
  if (length > SIZE_MAX / 4 || buffer->length > SIZE_MAX / 4) __builtin_trap();
  size_t needed = buffer->length + length + 1;
  if (needed > buffer->room) {
    // Twice the room: a byte is moved a bounded number of times.
    size_t room = 2 * needed;
    char *data = realloc(buffer->data, room);
    if (data == NULL) __builtin_trap();
    buffer->data = data;
    buffer->room = room;
  }
  if (length > 0) memcpy(buffer->data + buffer->length, bytes, length);
  buffer->length += length;
  buffer->data[buffer->length] = '\0';
}

void periapt_append_text(periapt_buffer *buffer, const char *text) { periapt_append(buffer, text, strlen(text)); }

periapt_bytes periapt_finished(periapt_buffer *buffer) {
  periapt_append(buffer, "", 0);
  return (periapt_bytes){buffer->data, buffer->length};
}

size_t periapt_find(const char *bytes, size_t length, size_t from, const char *mark) {
  size_t size = strlen(mark);
  while (from < length && length - from >= size) {
    const char *place = memchr(bytes + from, mark[0], length - from - size + 1);
    if (place == NULL) break;
    if (memcmp(place, mark, size) == 0) return (size_t)(place - bytes);
    from = (size_t)(place - bytes) + 1;
  }
  return length;
}
