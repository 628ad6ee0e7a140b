// The client of Pebble, beside a Pebble in memory and beside one that answers nonsense.
#include <periapt.h>
#include <periapt_test.h>
#include <stdlib.h>
#include <string.h>

#include "host.h"

// What the charm does at `start`; each test says.
static void (*step)(void);
static const char *told;

static void act(const periapt_event *event) {
  (void)event;
  step();
}

static void tell(const periapt_event *event) {
  if (event->check != NULL) told = periapt_text("%s %s", event->hook, event->check);
  else if (event->key != NULL) told = periapt_text("%s %s", event->key, periapt_pebble_notice(event->name, event->id, "id"));
  else told = periapt_text("%s", event->hook);
}

const periapt_handler periapt_handlers[] = {
    {"start", act},
    {"*", tell},
    {NULL, NULL},
};

static void started(void (*what)(void)) {
  pt_unit("app/0");
  pt_container("web");
  step = what;
}

// --- Steps ---

static void look(void) { PT_EXPECT(!periapt_pebble_can_connect("web")); }
static void look_again(void) { PT_EXPECT(periapt_pebble_can_connect("web")); }
static void replan(void) { periapt_pebble_replan("web"); }
static void layer(void) { periapt_pebble_add_layer("web", "x", "y"); }
static void plan(void) { periapt_pebble_plan("web"); }
static void pull(void) { periapt_pebble_pull("web", "/x"); }
static void list(void) { periapt_pebble_list_files("web", "/x"); }
static void check(void) { periapt_pebble_check("web", "x"); }
static void page(void) { periapt_workload_page(8080, "/a"); }

static void use_files(void) {
  PT_SAME(periapt_pebble_pull("web", "/etc/os").data, "Debian");
  char all[256];
  for (int i = 0; i < 256; i++) all[i] = (char)i;
  periapt_pebble_push_bytes("web", "/srv/a b&c", (periapt_bytes){all, sizeof all}, 0600);
  periapt_bytes read = periapt_pebble_pull("web", "/srv/a b&c");
  PT_EXPECT(read.length == 256 && memcmp(read.data, all, 256) == 0);
  periapt_pebble_push("web", "/srv/x/y", "");
  PT_EXPECT(periapt_pebble_pull("web", "/srv/x/y").length == 0 && !periapt_failed());
  periapt_pebble_make_dir("web", "/srv/empty");
  periapt_texts names = periapt_pebble_list_files("web", "/srv");
  PT_EXPECT(names.count == 3);
  if (names.count == 3) {
    PT_SAME(names.items[0], "a b&c");
    PT_SAME(names.items[1], "empty");
    PT_SAME(names.items[2], "x");
  }
  PT_EXPECT(periapt_pebble_exists("web", "/srv/x") && !periapt_pebble_exists("web", "/srv/z"));
  periapt_pebble_remove_path("web", "/srv/x");
  PT_EXPECT(!periapt_pebble_exists("web", "/srv/x/y") && !periapt_failed());
  PT_EXPECT(periapt_pebble_pull("web", "/none").data == NULL);
  PT_SAME(periapt_pebble_kind(), "not-found");
  PT_EXPECT(periapt_why() == PERIAPT_PEBBLE);
  // What is called after a failure does nothing.
  periapt_pebble_push("web", "/later", "x");
  periapt_forgive();
  PT_EXPECT(periapt_pebble_kind() == NULL);
  const char *const odd[] = {"etc/x", "/a\"b", "/a\r\nb", "/a\\b"};
  for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
    periapt_pebble_push("web", odd[i], "x");
    PT_SAME(periapt_pebble_kind(), "invalid");
    periapt_forgive();
  }
}

static void use_services(void) {
  periapt_pebble_add_layer("web", "charm", "services: {\"web\": {}}\n");
  periapt_pebble_replan("web");
  periapt_pebble_restart("web", "web");
  periapt_pebble_send_signal("web", "SIGHUP", "web");
  PT_SAME(periapt_pebble_plan("web"), "services: {}\n\xc3\xa9");
  PT_SAME(periapt_pebble_service("web", "web"), "active");
  PT_EXPECT(periapt_pebble_service("web", "none") == NULL);
  PT_SAME(periapt_pebble_check("web", "page"), "down");
  PT_EXPECT(periapt_pebble_stop_check("web", "page") && !periapt_pebble_stop_check("web", "page"));
  PT_SAME(periapt_pebble_check("web", "page"), "inactive");
  PT_EXPECT(periapt_pebble_start_check("web", "page") && !periapt_failed());
  PT_EXPECT(!periapt_pebble_start_check("web", "none"));
  PT_SAME(periapt_failure(), "container \"web\": cannot find check \"none\" (status 404)");
  PT_SAME(periapt_pebble_kind(), "api");
  periapt_forgive();
  periapt_pebble_notify("web", "example.com/done");
}

static void run(void) { periapt_pebble_run("web", (const char *const[]){"x", NULL}); }

static void use_commands(void) {
  char *input = malloc(100000);
  if (input == NULL) abort();
  memset(input, 7, 100000);
  const char *const cat[] = {"cat", "-", NULL};
  periapt_output output = periapt_pebble_exec("web", cat, (periapt_bytes){input, 100000}, 5);
  PT_EXPECT(output.code == 0 && output.out.length == 100000 && memcmp(output.out.data, input, 100000) == 0);
  PT_SAME(output.err.data, "cat -");
  // All streams are closed again.
  for (int i = 0; i < 20; i++) PT_SAME(PERIAPT_PEBBLE_RUN("web", "true"), "");
  PT_EXPECT(PERIAPT_PEBBLE_RUN("web", "false") == NULL);
  PT_SAME(periapt_failure(), "container \"web\": the command exited with code 1: false ");
  PT_SAME(periapt_pebble_kind(), "exit-code");
  periapt_forgive();
}

static pt_output answered(const char *const command[], const char *input, size_t length) {
  const char *said = periapt_text("%s %s", command[0], command[1] == NULL ? "" : command[1]);
  return (pt_output){periapt_is(command[0], "false"), input == NULL ? "" : input, length, said};
}

static void fetch(void) {
  periapt_page page = periapt_workload_page(8080, "/a");
  PT_EXPECT(page.status == 404);
  PT_SAME(page.body.data, "no page");
  periapt_workload_page(8080, "/ HTTP/1.1\r\nX: y");
  PT_EXPECT(periapt_failed() && strstr(periapt_failure(), "is no path of a request") != NULL);
  periapt_forgive();
  periapt_workload_page(8081, "/");
  PT_EXPECT(periapt_why() == PERIAPT_NOT_READY);
  periapt_forgive();
}

// --- Tests ---

static void a_container_that_has_not_started_cannot_be_reached(void) {
  pt_unit("app/0");
  step = look;
  PT_EXPECT(pt_run("start"));
  step = replan;
  PT_EXPECT(!pt_run("start"));
  PT_EXPECT(strstr(pt_failure(), "container \"web\": nobody listens") != NULL);
  pt_container("web");
  step = look_again;
  PT_EXPECT(pt_run("start"));
}

static void files_are_written_read_listed_and_removed(void) {
  started(use_files);
  pt_file("web", "/etc/os", "Debian");
  PT_EXPECT(pt_run("start"));
  PT_EXPECT(pt_pushed("web", "/later") == NULL);
}

static void services_are_planned_and_told_of(void) {
  started(use_services);
  pt_service("web", "web", "active");
  pt_check("web", "page", "down");
  pt_plan("web", "services: {}\n\xc3\xa9");
  PT_EXPECT(pt_run("start"));
  PT_SAME(pt_layer("web", "charm"), "services: {\"web\": {}}\n");
  static const char *checks = "stop-checks page; stop-checks page; start-checks page";
  PT_SAME(pt_actions("web"), periapt_text("replan; restart web; SIGHUP web; %s", checks));
}

static void a_command_has_input_outputs_and_an_exit_code(void) {
  started(use_commands);
  pt_runs("web", answered);
  PT_EXPECT(pt_run("start"));
}

static void an_error_of_pebble_has_its_kind_and_one_message(void) {
  started(layer);
  pt_answer("web", "/v1/layers", "400 {\"type\":\"error\",\"result\":{\"message\":\"cannot parse layer\"}}");
  PT_EXPECT(!pt_run("start"));
  PT_SAME(pt_failure(), "container \"web\": cannot parse layer (status 400)");
  PT_SAME(periapt_pebble_kind(), "api");
  pt_answer("web", "/v1/changes/",
            "200 {\"result\": {\"status\": \"Error\", \"err\": \"exited quickly\", \"tasks\": [{\"log\": [\"x\", \"y\"]}]}}");
  step = replan;
  PT_EXPECT(!pt_run("start"));
  PT_SAME(pt_failure(), "container \"web\": exited quickly\nx\ny");
  PT_SAME(periapt_pebble_kind(), "change-failed");
  pt_answer("web", "/v1/changes/", "504 {}");
  PT_EXPECT(!pt_run("start"));
  PT_SAME(pt_failure(), "container \"web\": replan still goes on after 32 s");
}

static void events_of_workloads_name_what_they_are_about(void) {
  started(look_again);
  PT_EXPECT(pt_pebble_ready("web"));
  PT_SAME(told, "web-pebble-ready");
  PT_EXPECT(pt_check_failed("web", "page"));
  PT_SAME(told, "web-pebble-check-failed page");
  PT_EXPECT(pt_check_recovered("web", "page"));
  PT_SAME(told, "web-pebble-check-recovered page");
  PT_EXPECT(pt_custom_notice("web", "7", "example.com/done"));
  PT_SAME(told, "example.com/done 7");
}

static void a_page_of_a_workload_is_fetched_from_its_port(void) {
  started(fetch);
  pt_page(8080, "404 no page");
  PT_EXPECT(pt_run("start"));
}

// A text so many times.
static const char *times(const char *text, size_t count) {
  size_t length = strlen(text);
  char *all = malloc(length * count + 1);
  if (all == NULL) abort();
  for (size_t i = 0; i < count; i++) memcpy(all + i * length, text, length);
  all[length * count] = '\0';
  return all;
}

// Each answer stands in memory of just its size, so that a sanitizer sees a read past its end.
static void sends(const char *bytes, size_t length) {
  char *copy = malloc(length == 0 ? 1 : length);
  if (copy == NULL) abort();
  memcpy(copy, bytes, length);
  pt_sends("web", copy, length);
}

#define CHUNKED "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
#define OPEN "HTTP/1.1 200 OK\r\n\r\n"

static void a_peer_that_is_no_pebble_is_one_error_within_bounds(void) {
  const char *const wrong = "a chunk of the response has no valid length", *const cut_off = "the response was cut off";
  const char *const large = "the body of the response has more than 8388608 bytes";
  const struct {
    const char *sent, *expected;
  } cases[] = {
      {"", cut_off},
      {"\r\n\r\n", "the response is no HTTP/1.1"},
      {"HTTP/1.1 200 OK\r\nX: y\r\n", cut_off},
      {"HTTP/1.1", cut_off},
      {"HTTP/1.1\r\n\r\n", "the response is no HTTP/1.1"},
      {"HTTP/1.1 99999999999 OK\r\n\r\n", "the response is no HTTP/1.1"},
      {"SSH-2.0\r\n\r\n", "the response is no HTTP/1.1"},
      {times("x", 100000), "the head of the response has more than 65536 bytes"},
      {times("x: y\r\n", 20000), "the head of the response has more than 65536 bytes"},
      {CHUNKED "ffffffff\r\n", large},
      {CHUNKED "ffffffffffffffff\r\nx", large},
      {CHUNKED "fffffffffffffffff\r\nx", wrong},
      {CHUNKED "-5\r\nhello\r\n", wrong},
      {CHUNKED "+5\r\nhello\r\n", wrong},
      {CHUNKED "\r\n", wrong},
      {CHUNKED "; x\r\n", wrong},
      {CHUNKED "1\r\nab\r\n", wrong},
      {CHUNKED "5\r\nhe", cut_off},
      {CHUNKED "5\r\nhello", cut_off},
      {CHUNKED "5\r\nhello\r", cut_off},
      {CHUNKED "5", cut_off},
      {"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n", "the response has no valid length"},
      {"HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n", "the response has no valid length"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello", cut_off},
      {"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", large},
      {"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\n", large},
      {"HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\n", large},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", "the response is encoded as \"gzip\""},
      {OPEN, "its answer with status 200 is unreadable"},
      {OPEN "{\"result\"", "its answer with status 200 is unreadable"},
      {OPEN "{\"result\":\"\\", "its answer with status 200 is unreadable"},
      {OPEN "{\"result\":[1", "its answer with status 200 is unreadable"},
      {OPEN "[1]", "its answer with status 200 is unreadable"},
  };
  void (*const steps[])(void) = {plan, list, check, replan, layer, run};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    for (size_t j = 0; j < sizeof steps / sizeof *steps; j++) {
      started(steps[j]);
      sends(cases[i].sent, strlen(cases[i].sent));
      PT_EXPECT(!pt_run("start"));
      PT_SAME(periapt_pebble_kind(), "broken");
      PT_EXPECT(pt_failure() != NULL && strstr(pt_failure(), cases[i].expected) != NULL);
      if (pt_failure() != NULL && strstr(pt_failure(), cases[i].expected) == NULL) PT_SAME(pt_failure(), cases[i].expected);
    }
    started(look);
    sends(cases[i].sent, strlen(cases[i].sent));
    PT_EXPECT(pt_run("start"));
  }
  started(plan);
  const char *endless = times("x", 9u << 20);
  pt_sends("web", periapt_text(OPEN "%s", endless), strlen(OPEN) + (9u << 20));
  PT_EXPECT(!pt_run("start"));
  PT_SAME(pt_failure(), "container \"web\": the body of the response has more than 8388608 bytes");
}

#define FORM "HTTP/1.1 200 OK\r\nContent-Type: multipart/form-data; boundary=b\r\n\r\n"
#define WHOLE                                                                                                    \
  FORM "--b\r\nX: y; name=\"files\"; filename=\"/x\"\r\n\r\nhello\r\n--b\r\nX: y; name=\"response\"\r\n\r\n"      \
       "{\"result\":[{\"path\":\"/x\"}]}\r\n--b--"

static void a_file_that_is_cut_off_anywhere_is_no_file(void) {
  static const char whole[] = WHOLE;
  started(pull);
  sends(whole, strlen(whole));
  PT_EXPECT(pt_run("start"));
  for (size_t length = 0; length < strlen(whole); length++) {
    started(pull);
    sends(whole, length);
    PT_EXPECT(!pt_run("start"));
    PT_SAME(periapt_pebble_kind(), "broken");
  }
}

static void a_hundred_thousand_chunks_are_one_answer(void) {
  const char *chunks = times("1\r\n \r\n", 100000);
  started(plan);
  const char *answer = periapt_text(CHUNKED "%sd\r\n{\"result\":\"\"}\r\n0\r\n\r\n", chunks);
  pt_sends("web", answer, strlen(answer));
  PT_EXPECT(pt_run("start"));
  started(plan);
  const char *deep = periapt_text(OPEN "{\"result\":%s", times("[", 100000));
  pt_sends("web", deep, strlen(deep));
  PT_EXPECT(!pt_run("start"));
  PT_SAME(pt_failure(), "container \"web\": its answer with status 200 is unreadable");
  started(page);
  pt_page(8080, "200 a");
  PT_EXPECT(pt_run("start"));
}

static void frames_that_are_wrong_are_one_error_and_others_are_read_in_any_pieces(void) {
#define END "\x81\x11{\"command\":\"end\"}"
  const struct {
    const char *bytes;
    size_t length;
    const char *expected;
  } cases[] = {
#define CASE(bytes, expected) {bytes, sizeof(bytes) - 1, expected}
      CASE("\x82\x83\0\0\0\0abc", "a frame of the websocket is malformed"),
      CASE("\xc2\x00", "a frame of the websocket is malformed"),
      CASE("\x83\x00", "a frame of the websocket is malformed"),
      CASE("\x8b\x00", "a frame of the websocket is malformed"),
      CASE("\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff", "a frame of the websocket has more than 1048576 bytes"),
      CASE("\x82\x7f\x00\x00\x00\x00\x00\x10\x00\x01", "a frame of the websocket has more than 1048576 bytes"),
      // A stream that ends is the end of the output. What is not whole is no output.
      CASE("", NULL),
      CASE("\x82", NULL),
      CASE("\x82\x05" "abc", NULL),
      CASE("\x82\x7e\x00", NULL),
      CASE("\x82\x7f\x00\x00\x00", NULL),
      CASE("\x88\x00", NULL),
      CASE("\x89\x02hi\x81\x05" "wrong" END, NULL),
      CASE(END END, NULL),
      CASE("\x01\x05{\"com\x80\x0cmand\":\"end\"}", NULL),
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    started(run);
    char *copy = malloc(cases[i].length + 1);
    if (copy == NULL) abort();
    memcpy(copy, cases[i].bytes, cases[i].length);
    host_container("web")->frames = copy;
    host_container("web")->frames_length = cases[i].length;
    bool succeeded = pt_run("start");
    PT_EXPECT(succeeded == (cases[i].expected == NULL));
    if (cases[i].expected != NULL) PT_SAME(pt_failure(), periapt_text("container \"web\": %s", cases[i].expected));
  }
}

int main(void) {
  PT_TEST(a_container_that_has_not_started_cannot_be_reached);
  PT_TEST(files_are_written_read_listed_and_removed);
  PT_TEST(services_are_planned_and_told_of);
  PT_TEST(a_command_has_input_outputs_and_an_exit_code);
  PT_TEST(an_error_of_pebble_has_its_kind_and_one_message);
  PT_TEST(events_of_workloads_name_what_they_are_about);
  PT_TEST(a_page_of_a_workload_is_fetched_from_its_port);
  PT_TEST(a_peer_that_is_no_pebble_is_one_error_within_bounds);
  PT_TEST(a_file_that_is_cut_off_anywhere_is_no_file);
  PT_TEST(a_hundred_thousand_chunks_are_one_answer);
  PT_TEST(frames_that_are_wrong_are_one_error_and_others_are_read_in_any_pieces);
  return pt_end();
}
