// The files of a container.
#include <stdlib.h>
#include <string.h>

#include "internal.h"

// Between the parts of an upload.
#define BOUNDARY "periapt-sdk-form-boundary"
#define MAX_LISTED 65536u

// Fails with the first error of files: each has a result of its own.
static void each(const char *container, const char *results) {
  const char *item = periapt_json_first(results);
  for (; item != NULL; item = periapt_json_next(item)) {
    const char *error = periapt_json_member(item, "error");
    if (error != NULL && *error == '{') {
      periapt_pebble_told(container, error, 0);
      return;
    }
  }
}

void periapt_pebble_push(const char *container, const char *path, const char *content) {
  periapt_pebble_push_bytes(container, path, (periapt_bytes){content, strlen(content)}, 0);
}

static bool is_path(const char *path) {
  if (*path != '/') return false;
  for (; *path != '\0'; path++) {
    if ((unsigned char)*path < ' ' || *path == 0x7f || *path == '"' || *path == '\\') return false;
  }
  return true;
}

void periapt_pebble_push_bytes(const char *container, const char *path, periapt_bytes content, unsigned permissions) {
  if (periapt_failed()) return;
  if (!is_path(path)) {
    periapt_pebble_failed(container, "invalid", periapt_text("\"%s\" is no absolute path of a file", path), 0);
    return;
  }
  if (content.length > 0 && periapt_find(content.data, content.length, 0, BOUNDARY) < content.length) {
    periapt_pebble_failed(container, "invalid", periapt_text("%s contains the text that uploads end with", path), 0);
    return;
  }
  const char *mode = permissions == 0 ? "" : periapt_text(",\"permissions\":\"%03o\"", permissions);
  const char *file = periapt_text("{\"path\":%s,\"make-dirs\":true%s}", periapt_json_quoted(path), mode);
  periapt_buffer form = {0};
  periapt_append_text(&form, "--" BOUNDARY "\r\nContent-Disposition: form-data; name=\"request\"\r\n"
                             "Content-Type: application/json\r\n\r\n");
  periapt_append_text(&form, periapt_text("{\"action\":\"write\",\"files\":[%s]}", file));
  periapt_append_text(&form, "\r\n--" BOUNDARY "\r\nContent-Disposition: form-data; name=\"files\"; filename=\"");
  periapt_append_text(&form, path);
  periapt_append_text(&form, "\"\r\n\r\n");
  if (content.length > 0) periapt_append(&form, content.data, content.length);
  periapt_append_text(&form, "\r\n--" BOUNDARY "--\r\n");
  periapt_request request = {"POST", "/v1/files", "multipart/form-data; boundary=" BOUNDARY, periapt_finished(&form)};
  periapt_response response;
  if (periapt_pebble_exchange(container, &request, &response)) each(container, periapt_pebble_answer(container, &response));
  free(form.data);
}

// The boundary of a form, after the line break before it; NULL: the type is no form's.
static const char *mark_of(const char *kind) {
  if (strncmp(kind, "multipart/form-data", 19) != 0) return NULL;
  const char *mark = strstr(kind, "boundary=");
  if (mark == NULL) return NULL;
  mark += 9;
  if (*mark == '"') mark++;
  size_t length = strcspn(mark, "\"; ");
  return length == 0 ? NULL : periapt_text("\r\n--%.*s", (int)(length < 200 ? length : 200), mark);
}

// Finds the two parts of a form: the file, if it is there, and the answer; false: the form is cut off.
static bool parts_of(periapt_bytes form, const char *mark, periapt_bytes *file, const char **answer) {
  size_t size = strlen(mark), at = size - 2;
  if (form.length < at || memcmp(form.data, mark + 2, at) != 0) return false;
  while (form.length - at >= 2 && memcmp(form.data + at, "--", 2) != 0) {
    size_t head = periapt_find(form.data, form.length, at, "\r\n\r\n");
    if (head == form.length) return false;
    size_t content = head + 4, end = periapt_find(form.data, form.length, content, mark);
    if (end == form.length) return false;
    charm_string_t named = {(uint8_t *)form.data + at, head - at}, found = {(uint8_t *)form.data + content, end - content};
    const char *fields = periapt_copied(&named);
    if (strstr(fields, "; name=\"response\"") != NULL) *answer = periapt_copied(&found);
    else if (strstr(fields, "; name=\"files\"") != NULL) *file = (periapt_bytes){periapt_copied(&found), found.len};
    at = end + size;
  }
  return form.length - at >= 2;
}

periapt_bytes periapt_pebble_pull(const char *container, const char *path) {
  periapt_bytes none = {NULL, 0}, file = none;
  periapt_request request = {"GET", periapt_text("/v1/files?action=read&path=%s", periapt_encoded(path)), "text/plain", none};
  periapt_response response;
  if (!periapt_pebble_exchange(container, &request, &response)) return none;
  const char *mark = mark_of(response.kind), *answer = NULL;
  if (mark == NULL) {
    // An answer in JSON tells why there is no file.
    periapt_pebble_answer(container, &response);
    periapt_pebble_failed(container, "broken", "its answer has no file", 0);
    return none;
  }
  bool is_whole = parts_of(response.body, mark, &file, &answer);
  const char *results = is_whole ? periapt_json_member(answer, "result") : NULL;
  if (results != NULL) each(container, results);
  if (results == NULL || file.data == NULL) {
    periapt_pebble_failed(container, "broken", periapt_text("the answer with %s is cut off", path), 0);
  }
  return periapt_failed() ? none : file;
}

bool periapt_pebble_exists(const char *container, const char *path) {
  if (periapt_failed()) return false;
  const char *target = periapt_text("/v1/files?action=list&itself=true&path=%s", periapt_encoded(path));
  if (periapt_pebble_get(container, target) != NULL) return true;
  if (periapt_is(periapt_pebble_kind(), "not-found")) periapt_forgive();
  return false;
}

periapt_texts periapt_pebble_list_files(const char *container, const char *path) {
  const char *target = periapt_text("/v1/files?action=list&path=%s", periapt_encoded(path));
  const char *entries = periapt_pebble_get(container, target);
  size_t count = 0, named = 0;
  for (const char *entry = periapt_json_first(entries); entry != NULL; entry = periapt_json_next(entry)) count++;
  if (count > MAX_LISTED) {
    periapt_pebble_failed(container, "broken", periapt_text("%s has more than %u entries", path, MAX_LISTED), 0);
    return (periapt_texts){NULL, 0};
  }
  const char **names = periapt_memory((count + 1) * sizeof *names);
  for (const char *entry = periapt_json_first(entries); entry != NULL; entry = periapt_json_next(entry)) {
    const char *name = periapt_json_string(periapt_json_member(entry, "name"));
    if (name != NULL && named < count) names[named++] = name;
  }
  return (periapt_texts){names, named};
}

void periapt_pebble_make_dir(const char *container, const char *path) {
  static const char format[] = "{\"action\":\"make-dirs\",\"dirs\":[{\"path\":%s,\"make-parents\":true}]}";
  each(container, periapt_pebble_post(container, "/v1/files", periapt_text(format, periapt_json_quoted(path))));
}

void periapt_pebble_remove_path(const char *container, const char *path) {
  static const char format[] = "{\"action\":\"remove\",\"paths\":[{\"path\":%s,\"recursive\":true}]}";
  each(container, periapt_pebble_post(container, "/v1/files", periapt_text(format, periapt_json_quoted(path))));
}
