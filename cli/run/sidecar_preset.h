#ifndef FACULA_CLI_SIDECAR_PRESET_H
#define FACULA_CLI_SIDECAR_PRESET_H
#include <cjson/cJSON.h>
#include "cli.h"

/* What a JSON file beside a model says of photos; an exit code.  *found: false where it says
 * nothing. */
int sidecar_preset(const cJSON *root, const char *path, bool *found, fac_preprocess *how);
#endif
