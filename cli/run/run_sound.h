/* facula run: models that take waveforms. */
#ifndef FACULA_CLI_RUN_SOUND_H
#define FACULA_CLI_RUN_SOUND_H
#include "cli.h"
#include "labels.h"

typedef struct sound_run {
    model *m;
    fac_device *device;
    fac_program *program;
    labels *names;
    const char *labels; /* --labels */
    int top;
    bool json;
} sound_run;

bool is_sound(const char *path); /* by its name */
/* Each file in windows as long as the model's input, one every half of it: the best classes of
 * each, with its times. */
int run_sounds(const sound_run *r, list files);
#endif
