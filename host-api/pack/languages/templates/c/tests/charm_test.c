// Tests of the charm against an in-memory unit: `make test`.

#include <periapt_test.h>

static void configured(const char *greeting) {
  pt_unit("{name}/0");
  pt_config_text("greeting", greeting);
  PT_EXPECT(pt_run("config-changed"));
}

static void it_says_what_it_is_told_to(void) {
  configured("Ahoy");
  PT_SAME(pt_status(), "active: says Ahoy");
}

static void without_a_greeting_it_is_blocked(void) {
  configured("");
  PT_SAME(pt_status(), "blocked: option greeting is empty");
}

static void the_action_greets_the_name_that_it_is_given(void) {
  configured("Ahoy");
  pt_param("whom", "\"you\"");
  PT_EXPECT(pt_action("greet"));
  PT_SAME(pt_result("greeting"), "Ahoy, you!");
}

int main(void) {
  PT_TEST(it_says_what_it_is_told_to);
  PT_TEST(without_a_greeting_it_is_blocked);
  PT_TEST(the_action_greets_the_name_that_it_is_given);
  return pt_end();
}
