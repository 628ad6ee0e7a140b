// Tests of the charm against an in-memory unit: `make test`.

#include <periapt_test.h>
#include <stddef.h>

static void started(void) {
  pt_unit("hello-c/0");
  pt_config_text("greeting", "Hello");
  pt_config_integer("port", 7777);
  PT_EXPECT(pt_run("install"));
  PT_EXPECT(pt_run("config-changed"));
}

static void it_says_what_it_was_told_to_on_its_port(void) {
  started();
  PT_SAME(pt_status(), "active: says \"Hello\" on port 7777");
  PT_EXPECT(pt_is_open(7777));
  pt_config_integer("port", 80);
  PT_EXPECT(pt_run("config-changed"));
  PT_EXPECT(pt_is_open(80) && !pt_is_open(7777));
}

static void units_are_answered_by_the_name_that_they_give(void) {
  started();
  uint32_t relation = pt_relate("greeting", "other");
  PT_EXPECT(pt_join(relation, "other/0"));
  PT_SAME(pt_bag(relation, "hello-c/0", "greeting"), "Hello, other/0!");
  pt_remote(relation, "other/0", "name", "you");
  PT_EXPECT(pt_change(relation, "other/0"));
  PT_SAME(pt_bag(relation, "hello-c/0", "greeting"), "Hello, you!");
  pt_config_text("greeting", "Ahoy");
  PT_EXPECT(pt_run("config-changed"));
  PT_SAME(pt_bag(relation, "hello-c/0", "greeting"), "Ahoy!");
}

static void what_is_heard_is_told_in_the_status(void) {
  started();
  uint32_t relation = pt_relate("hears", "other");
  PT_EXPECT(pt_join(relation, "other/0"));
  pt_remote(relation, "other/0", "greeting", "Moin!");
  PT_EXPECT(pt_change(relation, "other/0"));
  PT_SAME(pt_status(), "active: heard from other/0: Moin!");
  PT_SAME(pt_logged(), "heard from other/0: Moin!");
}

static void an_empty_greeting_blocks(void) {
  started();
  pt_config_text("greeting", "");
  PT_EXPECT(pt_run("config-changed"));
  PT_SAME(pt_status(), "blocked: option greeting is empty, expected something to say");
}

static void an_impossible_port_fails_the_hook_and_changes_nothing(void) {
  started();
  pt_config_integer("port", 70000);
  PT_EXPECT(!pt_run("config-changed"));
  PT_SAME(pt_failure(), "70000 is no port: expected 1 to 65535");
  PT_EXPECT(pt_is_open(7777));
}

static void an_action_greets_and_counts(void) {
  started();
  pt_param("whom", "\"s\\u00e9same\"");
  PT_EXPECT(pt_action("greet"));
  PT_SAME(pt_result("greeting"), "Hello, sésame!");
  pt_param("whom", "\"you\"");
  PT_EXPECT(pt_action("greet"));
  PT_SAME(pt_result("times"), "2");
  PT_SAME(pt_stored("greetings"), "2");
  pt_param("whom", "\"\"");
  PT_EXPECT(pt_action("greet"));
  PT_SAME(pt_action_failure(), "nobody was named");
  PT_EXPECT(pt_action("explode") && !pt_handled());
}

int main(void) {
  PT_TEST(it_says_what_it_was_told_to_on_its_port);
  PT_TEST(units_are_answered_by_the_name_that_they_give);
  PT_TEST(what_is_heard_is_told_in_the_status);
  PT_TEST(an_empty_greeting_blocks);
  PT_TEST(an_impossible_port_fails_the_hook_and_changes_nothing);
  PT_TEST(an_action_greets_and_counts);
  return pt_end();
}
