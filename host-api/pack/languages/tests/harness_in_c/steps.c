// Runs the steps of a case in the table of impossible states, with a harness; prints a line for each step that succeeds.
//
//   steps [relate ENDPOINT APP | join RELATION UNIT | change RELATION UNIT | change-app RELATION | depart RELATION UNIT | end RELATION]...

#include <periapt.h>
#include <periapt_test.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void nothing(const periapt_event *event) { (void)event; }

const periapt_handler periapt_handlers[] = {{"*", nothing}, {NULL, NULL}};

int main(int count, char **arguments) {
  (void)count;
  pt_unit("app/0");
  for (char **with = arguments + 1; with[0] != NULL;) {
    const char *word = with[0];
    uint32_t relation = (uint32_t)atoi(with[1]);
    bool is_alone = strcmp(word, "change-app") == 0 || strcmp(word, "end") == 0;
    if (strcmp(word, "relate") == 0) pt_relate(with[1], with[2]);
    else if (strcmp(word, "join") == 0) pt_join(relation, with[2]);
    else if (strcmp(word, "change") == 0) pt_change(relation, with[2]);
    else if (strcmp(word, "change-app") == 0) pt_change(relation, NULL);
    else if (strcmp(word, "depart") == 0) pt_depart(relation, with[2]);
    else if (strcmp(word, "end") == 0) pt_break(relation);
    else return 2;
    printf("%s\n", word);
    with += is_alone ? 2 : 3;
  }
  return 0;
}
