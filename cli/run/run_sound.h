/* facula run and predict: models that take waveforms. */
#ifndef FACULA_CLI_RUN_SOUND_H
#define FACULA_CLI_RUN_SOUND_H
#include "hear.h"

typedef struct sound_run {
    model *m;
    fac_device *device;
    fac_program *program;
    labels *names;
    const char *labels; /* --labels */
    int top;
    bool json;
    bool averaged; /* a line for each sound, not for each window */
} sound_run;

bool is_sound(const char *path);     /* by its name */
bool means_sounds(const char *path); /* one, a folder, or a table *.csv or *.tsv of them */
/* Each file in windows as long as the model's input, one every half of it: the best classes of
 * each, with its times, and those of their average. */
int run_sounds(const sound_run *r, list files);
#endif
