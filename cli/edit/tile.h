/* What the files of `facula tile` share. */
#ifndef FACULA_CLI_TILE_H
#define FACULA_CLI_TILE_H
#include "cli.h"

/* A device as a file describes it: docs/ANALYSIS.md has the keys. */
typedef struct tile_device {
    fac_tile_target target;
    bool pad;
    char name[64];
    double clock_hz, macs_per_cycle, bytes_per_cycle, overhead_cycles;
} tile_device;
int tile_device_load(
    const char *path,
    tile_device *to);        /* EXIT_OK, or EXIT_FAILED after the key at fault was named */
void tile_device_keys(void); /* the table of keys, for --help */

/* What was done, for people and for machines.  after and saved: NULL when nothing was written. */
typedef struct tile_result {
    const fac_tiling *tiling;
    const fac_graph *before, *after;
    const fac_onnx_saved *saved;
    const tile_device *device;
    const char *path, *mode, *sum;
    long batch;
} tile_result;
int tile_print(const tile_result *r);
int tile_print_json(const tile_result *r);
#endif
