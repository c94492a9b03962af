/* What cJSON has no memory for is missing from what it makes, without a word: it is remembered
 * here. */
#include "json_memory.h"
#include <cjson/cJSON.h>
#include <stdatomic.h>
#include <stdlib.h>

static atomic_bool lost;

static void *ask(size_t bytes) {
    void *p = malloc(bytes);
    if (!p) json_lose();
    return p;
}

void json_start(void) {
    cJSON_Hooks hooks = { ask, free };
    cJSON_InitHooks(&hooks);
}

void json_lose(void) { atomic_store(&lost, true); }
bool json_lost(void) { return atomic_load(&lost); }
