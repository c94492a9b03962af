/* Memory of JSON: whoever builds it need not look at each item, since what it is missing from is
 * never printed. */
#ifndef FACULA_CLI_JSON_MEMORY_H
#define FACULA_CLI_JSON_MEMORY_H
#include <stdbool.h>

void json_start(void); /* before all JSON */
void json_lose(void);  /* what was to be an item had no memory before it was one */
bool json_lost(void);  /* an item, or a text, had no memory, once at least */
#endif
