// What is said to whom.
#ifndef GREETING_H
#define GREETING_H

#include <stdint.h>

// The words that the operator chose; NULL after a failure, or if there are none: the unit is then blocked.
const char *greeting(void);
// The same for one unit of a relation, by the name that it gives.
const char *greeting_for(uint32_t relation, const char *unit);
// Counts one more, over all hooks of this unit.
int count_greeting(void);

#endif
