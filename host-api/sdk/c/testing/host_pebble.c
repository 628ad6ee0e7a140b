// The Pebble of a container in memory: what it answers.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../src/internal.h"
#include "host.h"

struct container *host_container(const char *name) {
  for (size_t i = 0; i < host.container_count; i++) {
    if (strcmp(host.containers[i].name, name) == 0) return &host.containers[i];
  }
  host_inconsistent("the test has not started the container %s", name);
}

static bool is_below(const char *path, const char *directory) {
  size_t length = strlen(directory);
  while (length > 0 && directory[length - 1] == '/') length--;
  return strncmp(path, directory, length) == 0 && path[length] == '/';
}

void host_write(struct container *it, const char *path, const char *data, size_t length, bool is_directory) {
  for (size_t i = 0; i < it->file_count;) {
    bool is_there = strcmp(it->files[i].path, path) == 0;
    if (is_there || (data == NULL && is_below(it->files[i].path, path))) it->files[i] = it->files[--it->file_count];
    else i++;
  }
  if (data == NULL) return;
  if (it->file_count == HOST_MAX) abort();
  it->files[it->file_count].path = path;
  it->files[it->file_count].data = data;
  it->files[it->file_count].length = length;
  it->files[it->file_count++].is_directory = is_directory;
}

static struct host_reply json(unsigned status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const char *body = periapt_formatted(format, arguments);
  va_end(arguments);
  return (struct host_reply){status, "application/json", body, strlen(body)};
}

static struct host_reply missing(const char *path) {
  const char *message = periapt_json_quoted(periapt_text("stat %s: no such file or directory", path));
  return json(404, "{\"type\":\"error\",\"result\":{\"kind\":\"not-found\",\"message\":%s}}", message);
}

// A list of entries, each with its name and one member more.
static struct host_reply entries(const struct entries *all, const char *member) {
  periapt_buffer list = {0};
  for (size_t i = 0; i < all->count; i++) {
    const char *name = periapt_json_quoted(all->all[i].key), *value = periapt_json_quoted(all->all[i].value);
    periapt_append_text(&list, periapt_text("%s{\"name\":%s,\"%s\":%s}", i == 0 ? "" : ",", name, member, value));
  }
  return json(200, "{\"result\":[%s]}", periapt_finished(&list).data);
}

static const char *word(const char *body, const char *key) {
  const char *text = periapt_json_string(periapt_json_member(body, key));
  return text == NULL ? "" : text;
}

static void write_down(struct container *it, const char *verb, const char *name) {
  const char *before = it->actions == NULL ? "" : periapt_text("%s; ", it->actions);
  it->actions = periapt_text("%s%s%s%s", before, verb, name == NULL ? "" : " ", name == NULL ? "" : name);
}

static void act(struct container *it, const char *body, const char *verb) {
  write_down(it, verb, periapt_json_string(periapt_json_first(periapt_json_member(body, "services"))));
}

// Starts or stops the check that the SDK names: one that runs is `up` or `down`.
static struct host_reply act_on_check(struct container *it, const char *body) {
  const char *action = word(body, "action");
  const char *name = periapt_json_string(periapt_json_first(periapt_json_member(body, "checks")));
  bool is_start = periapt_is(action, "start");
  for (size_t i = 0; i < it->checks.count; i++) {
    if (!periapt_is(name, it->checks.all[i].key)) continue;
    write_down(it, periapt_text("%s-checks", action), name);
    if (periapt_is(it->checks.all[i].value, "inactive") != is_start) return json(200, "{\"result\":{\"changed\":[]}}");
    it->checks.all[i].value = is_start ? "up" : "inactive";
    return json(200, "{\"result\":{\"changed\":[%s]}}", periapt_json_quoted(name));
  }
  const char *message = periapt_json_quoted(periapt_text("cannot find check \"%s\"", name == NULL ? "" : name));
  return json(404, "{\"type\":\"error\",\"result\":{\"message\":%s}}", message);
}

// The path in a query, without what it was encoded with.
static const char *queried(const char *path) {
  const char *given = strstr(path, "path=");
  if (given == NULL) return "";
  char *plain = periapt_memory(strlen(given)), *out = plain;
  for (given += 5; *given != '\0' && *given != '&'; given++) {
    unsigned byte;
    if (*given == '%' && sscanf(given + 1, "%2x", &byte) == 1) {
      *out++ = (char)byte;
      given += 2;
    } else {
      *out++ = *given;
    }
  }
  *out = '\0';
  return plain;
}

static struct host_reply read_file(const struct container *it, const char *path) {
  periapt_buffer form = {0};
  const char *error = ",\"error\":{\"kind\":\"not-found\",\"message\":\"no such file or directory\"}";
  for (size_t i = 0; i < it->file_count; i++) {
    if (strcmp(it->files[i].path, path) != 0 || it->files[i].is_directory) continue;
    periapt_append_text(&form, "--b\r\nContent-Disposition: form-data; name=\"files\"; filename=\"x\"\r\n\r\n");
    periapt_append(&form, it->files[i].data, it->files[i].length);
    periapt_append_text(&form, "\r\n");
    error = "";
  }
  periapt_append_text(&form, "--b\r\nContent-Disposition: form-data; name=\"response\"\r\n\r\n");
  periapt_append_text(&form, periapt_text("{\"result\":[{\"path\":%s%s}]}\r\n--b--\r\n", periapt_json_quoted(path), error));
  periapt_bytes whole = periapt_finished(&form);
  return (struct host_reply){200, "multipart/form-data; boundary=b", whole.data, whole.length};
}

static int by_name(const void *one, const void *other) {
  return strcmp(*(const char *const *)one, *(const char *const *)other);
}

static struct host_reply list(const struct container *it, const char *path, bool itself) {
  const char *names[HOST_MAX];
  size_t count = 0, there = 0;
  for (size_t i = 0; i < it->file_count; i++) {
    const char *other = it->files[i].path;
    if (strcmp(other, path) == 0) there++;
    if (!is_below(other, path)) continue;
    there++;
    const char *name = other + strlen(path) + (path[strlen(path) - 1] == '/' ? 0 : 1);
    names[count++] = periapt_text("%.*s", (int)strcspn(name, "/"), name);
  }
  if (there == 0) return missing(path);
  if (itself) return json(200, "{\"result\":[{}]}");
  qsort(names, count, sizeof *names, by_name);
  periapt_buffer shown = {0};
  for (size_t i = 0; i < count; i++) {
    if (i > 0 && strcmp(names[i - 1], names[i]) == 0) continue;
    periapt_append_text(&shown, periapt_text("%s{\"name\":%s}", i == 0 ? "" : ",", periapt_json_quoted(names[i])));
  }
  return json(200, "{\"result\":[%s]}", periapt_finished(&shown).data);
}

static struct host_reply upload(struct container *it, const char *form, size_t length) {
  size_t line = periapt_find(form, length, 0, "\r\n"), named = periapt_find(form, length, 0, "filename=\"");
  if (line == length || named == length) abort();
  named += 10;
  const char *mark = periapt_text("\r\n%.*s", (int)line, form);
  const char *path = periapt_text("%.*s", (int)strcspn(form + named, "\""), form + named);
  size_t content = periapt_find(form, length, named, "\r\n\r\n") + 4, end = periapt_find(form, length, content, mark);
  if (end == length) abort();
  charm_string_t data = {(uint8_t *)form + content, end - content};
  host_write(it, path, periapt_copied(&data), data.len, false);
  return json(200, "{\"result\":[{\"path\":%s}]}", periapt_json_quoted(path));
}

void host_run(struct container *it, const char *input, size_t length) {
  const char *command[HOST_MAX + 1] = {NULL};
  size_t count = 0;
  const char *word = periapt_json_first(periapt_json_member(it->command, "command"));
  for (; word != NULL && count < HOST_MAX; word = periapt_json_next(word)) command[count++] = periapt_json_string(word);
  static const pt_output none = {127, "", 0, "the container has no answer for commands"};
  it->output = it->run == NULL ? none : it->run(command, input, length);
  it->has_run = true;
}

static struct host_reply files(struct container *it, const char *body) {
  const char *made = periapt_json_first(periapt_json_member(body, "dirs"));
  if (made != NULL) host_write(it, word(made, "path"), "", 0, true);
  const char *removed = periapt_json_first(periapt_json_member(body, "paths"));
  if (removed != NULL) host_write(it, word(removed, "path"), NULL, 0, false);
  return json(200, "{\"result\":[]}");
}

struct host_reply host_pebble(struct container *it, const char *method, const char *path, const char *body, size_t length) {
  for (size_t i = 0; i < it->answers.count; i++) {
    if (strncmp(path, it->answers.all[i].key, strlen(it->answers.all[i].key)) != 0) continue;
    const char *answer = it->answers.all[i].value, *space = strchr(answer, ' ');
    if (space == NULL) host_inconsistent("an answer is a status and JSON, not \"%s\"", answer);
    return json((unsigned)strtoul(answer, NULL, 10), "%s", space + 1);
  }
  const char *line = periapt_text("%s %.*s", method, (int)strcspn(path, "?"), path);
  if (periapt_is(line, "GET /v1/system-info")) return json(200, "{\"result\":{\"boot-id\":\"1\"}}");
  if (periapt_is(line, "GET /v1/plan")) {
    return json(200, "{\"result\":%s}", periapt_json_quoted(it->plan == NULL ? "" : it->plan));
  }
  if (periapt_is(line, "GET /v1/services")) return entries(&it->services, "current");
  if (periapt_is(line, "GET /v1/checks")) return entries(&it->checks, "status");
  if (periapt_is(line, "GET /v1/files")) {
    if (strstr(path, "action=read") != NULL) return read_file(it, queried(path));
    return list(it, queried(path), strstr(path, "itself=true") != NULL);
  }
  if (periapt_is(line, "POST /v1/files")) return *body == '-' ? upload(it, body, length) : files(it, body);
  if (periapt_is(line, "POST /v1/layers")) {
    host_put(&it->layers, "", word(body, "label"), word(body, "layer"));
    return json(200, "{\"result\":true}");
  }
  if (periapt_is(line, "POST /v1/services")) {
    act(it, body, word(body, "action"));
    return json(202, "{\"change\":\"1\",\"result\":null}");
  }
  if (periapt_is(line, "POST /v1/checks")) return act_on_check(it, body);
  if (periapt_is(line, "POST /v1/signals")) {
    act(it, body, word(body, "signal"));
    return json(200, "{\"result\":true}");
  }
  if (periapt_is(line, "POST /v1/notices")) {
    host_put(&it->notices, "", word(body, "key"), "");
    return json(200, "{\"result\":{\"id\":\"1\"}}");
  }
  if (periapt_is(line, "POST /v1/exec")) {
    it->command = periapt_text("%.*s", (int)length, body);
    return json(202, "{\"change\":\"1\",\"result\":{\"task-id\":\"1\"}}");
  }
  if (strncmp(line, "GET /v1/changes/", 16) == 0) {
    const char *data = periapt_text("{\"data\":{\"exit-code\":%d}}", it->output.code);
    return json(200, "{\"result\":{\"status\":\"Done\",\"err\":null,\"tasks\":[%s]}}", data);
  }
  if (strncmp(line, "GET /v1/notices/", 16) == 0) {
    return json(200, "{\"result\":{\"key\":\"example.com/done\",\"last-data\":{\"id\":%s}}}", periapt_json_quoted(line + 16));
  }
  return missing(path);
}
