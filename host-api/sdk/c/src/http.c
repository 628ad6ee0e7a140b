// HTTP/1.1 on a stream to a workload: one exchange, within bounds. All that comes is a stranger's.
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "internal.h"

#define MAX_HEAD (64u << 10)
#define MAX_CHUNK_LINE 1024u
#define PIECE (64u << 10)

// A stream, and the bytes of it that were read.
struct incoming {
  uint32_t stream;
  periapt_buffer bytes;
  size_t taken;
  // What went wrong; NULL: nothing.
  const char *error;
};

static size_t waiting(const struct incoming *in) { return in->bytes.length - in->taken; }
static const char *start(const struct incoming *in) { return in->bytes.data + in->taken; }

const char *periapt_said(const periapt_charm_types_error_t *error) {
  bool is_other = error->tag == PERIAPT_CHARM_TYPES_ERROR_OTHER;
  return periapt_copied(is_other ? &error->val.other.f1 : &error->val.failed);
}

// Reads a piece; false at the end, which is one before its time unless the caller says otherwise.
static bool more(struct incoming *in) {
  if (in->taken > 0) {
    // What is left is short: a line, or a part of a mark.
    memmove(in->bytes.data, start(in), waiting(in));
    in->bytes.length -= in->taken;
    in->taken = 0;
  }
  periapt_charm_workloads_received_t received;
  periapt_charm_types_error_t error;
  if (!periapt_charm_workloads_read(in->stream, PIECE, NULL, &received, &error)) {
    in->error = periapt_said(&error);
    return false;
  }
  if (received.tag != PERIAPT_CHARM_WORKLOADS_RECEIVED_BYTES) return false;
  periapt_append(&in->bytes, received.val.bytes.ptr, received.val.bytes.len);
  charm_list_u8_free(&received.val.bytes);
  return true;
}

static bool failed(struct incoming *in, const char *error) {
  if (in->error == NULL) in->error = error;
  return false;
}

static bool cut_off(struct incoming *in) { return failed(in, "the response was cut off"); }

// Takes the text up to a mark, and the mark; false: there are more bytes than `most`, or none come.
static bool until(struct incoming *in, const char *mark, size_t most, const char *too_long, const char **text) {
  for (size_t searched = 0;;) {
    size_t length = waiting(in), end = length == 0 ? 0 : periapt_find(start(in), length, searched, mark);
    if (end > most) return failed(in, too_long);
    if (end < length) {
      charm_string_t found = {(uint8_t *)start(in), end};
      *text = periapt_copied(&found);
      in->taken += end + strlen(mark);
      return true;
    }
    // A mark may begin in this piece and end in the next one.
    searched = length < strlen(mark) ? 0 : length - strlen(mark) + 1;
    if (!more(in)) return cut_off(in);
  }
}

// Takes so many bytes.
static bool exactly(struct incoming *in, size_t length, periapt_buffer *into) {
  for (;;) {
    size_t taken = length < waiting(in) ? length : waiting(in);
    if (taken > 0) periapt_append(into, start(in), taken);
    in->taken += taken;
    length -= taken;
    if (length == 0) return true;
    if (!more(in)) return cut_off(in);
  }
}

// A number of at most so many digits of a base, and nothing else; false: it is none.
static bool number(const char *text, unsigned base, size_t digits, size_t *value) {
  *value = 0;
  size_t count = 0;
  for (; *text != '\0'; text++, count++) {
    unsigned digit = base;
    if (*text >= '0' && *text <= '9') digit = (unsigned)(*text - '0');
    if (*text >= 'a' && *text <= 'f') digit = (unsigned)(*text - 'a') + 10;
    if (*text >= 'A' && *text <= 'F') digit = (unsigned)(*text - 'A') + 10;
    if (digit >= base || *value > SIZE_MAX / 32) return false;
    *value = *value * base + digit;
  }
  return count > 0 && count <= digits;
}

// The text without the spaces around it, which are written over.
static char *trimmed(char *text) {
  while (*text == ' ' || *text == '\t') text++;
  size_t length = strlen(text);
  while (length > 0 && (text[length - 1] == ' ' || text[length - 1] == '\t' || text[length - 1] == '\r')) length--;
  text[length] = '\0';
  return text;
}

struct head {
  unsigned status;
  const char *kind, *accept;
  bool is_chunked, has_length;
  size_t length;
};

static bool field(struct incoming *in, struct head *head, const char *name, const char *value, size_t most) {
  if (strcasecmp(name, "transfer-encoding") == 0) {
    head->is_chunked = strcasecmp(value, "chunked") == 0;
    return head->is_chunked || failed(in, periapt_text("the response is encoded as \"%s\"", value));
  }
  if (strcasecmp(name, "content-length") == 0) {
    size_t digits = strspn(value, "0123456789");
    if (digits == 0 || value[digits] != '\0') return failed(in, "the response has no valid length");
    // A number that does not fit is too large, whatever it is.
    head->has_length = true;
    if (!number(value, 10, 18, &head->length)) head->length = SIZE_MAX;
    if (head->length > most) head->length = SIZE_MAX;
  }
  if (strcasecmp(name, "sec-websocket-accept") == 0) head->accept = periapt_text("%s", value);
  if (strcasecmp(name, "content-type") == 0) head->kind = periapt_text("%s", value);
  return true;
}

static bool read_head(struct incoming *in, struct head *head, size_t most) {
  const char *given;
  if (!until(in, "\r\n\r\n", MAX_HEAD, "the head of the response has more than 65536 bytes", &given)) return false;
  char *line = (char *)given;
  bool is_http = strncmp(line, "HTTP/1.", 7) == 0;
  const char *space = is_http ? strchr(line, ' ') : NULL;
  if (space == NULL || strspn(space + 1, "0123456789") != 3) return failed(in, "the response is no HTTP/1.1");
  head->status = (unsigned)strtoul(space + 1, NULL, 10);
  while ((line = strchr(line, '\n')) != NULL) {
    line++;
    char *end = strchr(line, '\n'), *colon = strchr(line, ':');
    if (colon == NULL) break;
    if (end != NULL && colon > end) continue;
    if (end != NULL) *end = '\0';
    *colon = '\0';
    char *name = trimmed(line);
    bool holds = field(in, head, name, trimmed(colon + 1), most);
    if (end == NULL || !holds) return holds;
    *end = '\n';
    line = end;
  }
  return true;
}

static bool read_chunks(struct incoming *in, size_t most, const char *too_large, periapt_buffer *body) {
  static const char wrong[] = "a chunk of the response has no valid length";
  for (;;) {
    const char *given;
    if (!until(in, "\r\n", MAX_CHUNK_LINE, wrong, &given)) return false;
    char *line = (char *)given;
    line[strcspn(line, ";")] = '\0';
    size_t length;
    const char *digits = trimmed(line);
    bool is_hex = strlen(digits) > 0 && strlen(digits) <= 16 && strspn(digits, "0123456789abcdefABCDEF") == strlen(digits);
    bool fits = is_hex && number(digits, 16, 16, &length);
    free(line);
    if (!fits) return failed(in, is_hex ? too_large : wrong);
    // Fields may follow the last chunk. Nothing here needs them.
    if (length == 0) return true;
    if (length > most - body->length) return failed(in, too_large);
    if (!exactly(in, length, body)) return false;
    periapt_buffer end = {0};
    if (!exactly(in, 2, &end)) return false;
    bool is_end = memcmp(end.data, "\r\n", 2) == 0;
    free(end.data);
    if (!is_end) return failed(in, wrong);
  }
}

static bool read_body(struct incoming *in, const struct head *head, size_t most, periapt_buffer *body) {
  const char *too_large = periapt_text("the body of the response has more than %zu bytes", most);
  if (head->is_chunked) return read_chunks(in, most, too_large, body);
  if (head->status == 204 || head->status == 304) return true;
  if (head->has_length) return head->length > most ? failed(in, too_large) : exactly(in, head->length, body);
  for (;;) {
    if (waiting(in) > most - body->length) return failed(in, too_large);
    if (waiting(in) > 0) periapt_append(body, start(in), waiting(in));
    in->taken = in->bytes.length;
    if (!more(in)) return in->error == NULL;
  }
}

static const char *send_all(uint32_t stream, periapt_bytes bytes) {
  for (size_t at = 0; at < bytes.length;) {
    size_t left = bytes.length - at;
    charm_list_u8_t piece = {(uint8_t *)bytes.data + at, left < PIECE ? left : PIECE};
    uint32_t written;
    periapt_charm_types_error_t error;
    if (!periapt_charm_workloads_write(stream, &piece, NULL, &written, &error)) return periapt_said(&error);
    at += written <= piece.len ? written : piece.len;
  }
  return NULL;
}

const char *periapt_exchange(uint32_t stream, const periapt_request *request, size_t most, periapt_response *response) {
  for (const char *letter = request->path; *letter != '\0' || letter == request->path; letter++) {
    if (request->path[0] != '/' || (unsigned char)*letter <= ' ' || *letter == 0x7f) {
      return periapt_text("\"%s\" is no path of a request", request->path);
    }
  }
  periapt_buffer sent = {0};
  periapt_append_text(&sent, periapt_text("%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: %s\r\n"
                                          "Content-Length: %zu\r\n\r\n",
                                          request->method, request->path, request->kind, request->body.length));
  if (request->body.length > 0) periapt_append(&sent, request->body.data, request->body.length);
  const char *error = send_all(stream, periapt_finished(&sent));
  free(sent.data);
  if (error != NULL) return error;
  struct incoming in = {stream, {0}, 0, NULL};
  struct head head = {.kind = "", .accept = ""};
  periapt_buffer body = {0};
  bool is_whole = read_head(&in, &head, most) && read_body(&in, &head, most, &body);
  free(in.bytes.data);
  if (!is_whole) {
    free(body.data);
    return in.error;
  }
  *response = (periapt_response){head.status, periapt_text("%s", head.kind), periapt_finished(&body)};
  return NULL;
}

// The key of each handshake, and the answer to it. A key keeps caches and proxies from mistaking answers: here are none.
#define KEY "dGhlIHNhbXBsZSBub25jZQ=="
#define ACCEPT "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="

const char *periapt_upgrade(uint32_t stream, const char *path, periapt_buffer *rest) {
  const char *asked = periapt_text("GET %s HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                                   "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " KEY "\r\n\r\n",
                                   path);
  const char *error = send_all(stream, (periapt_bytes){asked, strlen(asked)});
  if (error != NULL) return error;
  struct incoming in = {stream, {0}, 0, NULL};
  struct head head = {.kind = "", .accept = ""};
  bool is_read = read_head(&in, &head, 0);
  if (is_read && waiting(&in) > 0) periapt_append(rest, start(&in), waiting(&in));
  free(in.bytes.data);
  if (!is_read) return in.error;
  bool is_websocket = head.status == 101 && strcmp(head.accept, ACCEPT) == 0;
  return is_websocket ? NULL : periapt_text("%s opens no websocket (status %u)", path, head.status);
}

const char *periapt_encoded(const char *text) {
  static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/-_.~";
  periapt_buffer query = {0};
  for (; *text != '\0'; text++) {
    if (strchr(plain, *text) != NULL) periapt_append(&query, text, 1);
    else periapt_append_text(&query, periapt_text("%%%02X", (unsigned)(unsigned char)*text));
  }
  return periapt_finished(&query).data;
}
