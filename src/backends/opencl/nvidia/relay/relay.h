/* Relays on NVIDIA GPUs: many steps of a run in one launch, by a persistent kernel
 * (nv_relay.cl).  What a step is, its leg, its solver says when it makes its plan; relay.c
 * puts legs into a table and runs them, relay_text.c writes the kernel for those that a relay has.
 *
 * A relay needs all its groups at once on the device, one for each compute unit; so only one may
 * run at a time, and the device has its context and queue to itself (fac_nv_relays). */
#ifndef FACULA_OPENCL_NVIDIA_RELAY_H
#define FACULA_OPENCL_NVIDIA_RELAY_H
#include "backends/opencl/nvidia/conv/conv.h"
#include "backends/opencl/pool/quads.h"

/* WARPS: of a group, without the keeper; MOST: legs of a relay, whose table lies in local memory.
 */
enum { FAC_NV_RELAY_WARPS = 8, FAC_NV_RELAY_MOST = 72 };

/* Operands of a leg. */
enum { FAC_NV_X, FAC_NV_W, FAC_NV_Y, FAC_NV_BIAS, FAC_NV_ADD, FAC_NV_LEG_OPERANDS };

/* As nv_relay.cl has it. */
typedef struct fac_nv_leg {
    int64_t at[FAC_NV_LEG_OPERANDS]; /* bytes: after the operand, in the table after its buffer */
    int32_t base[FAC_NV_LEG_OPERANDS];
    int32_t code, fresh, shift, team, tiles, finish, weights, early;
    int32_t image, step[2], in[2], out[2], origin[2], stride[2], far[2], taps[2];
    uint32_t multiplier[2], shifts[2];
    int32_t pixels, rows, channels, row_tiles, columns, k_tiles, each, all_taps;
    int32_t lines, wide, across, spare;
    uint32_t by_columns[2], by_taps[2];
    int32_t y_step[3], y_channel, add_step[3];
    float scale;
    int32_t tap[32];
} fac_nv_leg;

typedef enum fac_nv_leg_kind {
    FAC_NV_LEG_CONV,
    FAC_NV_LEG_DEPTHWISE,
    FAC_NV_LEG_POOL
} fac_nv_leg_kind;

/* All that the text of a leg depends on; what does not belong to its kind is 0. */
typedef struct fac_nv_code {
    fac_nv_leg_kind kind;
    int pixels, columns, row,
        depth;           /* convolutions: the tile, bytes of a row of weights, k-tiles at once */
    bool window, ragged; /* several taps or pads; channels end within a k-tile */
    fac_nv_mode mode;
    int r, s;                       /* depthwise: the window */
    bool average;                   /* pools */
    fac_dtype x, result, bias, add; /* types; FAC_F32 where there is none */
} fac_nv_code;

/* What is done to sums: + bias, rounded to a 16-bit type (FAC_NONE: not), the body, whose second
 * input is an operand of the sum's size. */
typedef struct fac_nv_finish {
    bool biased;
    fac_dtype rounded;
    const fac_graph *body;
} fac_nv_finish;

/* The first member of the plan of a solver that relays take; operand: which of the step's (inputs,
 * then outputs), -1: none. */
typedef struct fac_nv_leg_plan {
    fac_nv_leg leg;
    fac_nv_code code;
    fac_nv_finish finish;
    int operand[FAC_NV_LEG_OPERANDS];
} fac_nv_leg_plan;

/* May this device have relays? */
bool fac_nv_relays(fac_opencl *o);

/* The geometry of windows over x, of rank 2, and quotients by the size of y. */
void fac_nv_leg_windows(fac_nv_leg *l, const fac_window *h, const fac_window *w);
/* How long a leg of so many bytes takes at least that does little else, meeting included. */
double fac_nv_leg_seconds(const fac_opencl *o, double bytes);

/* ---- relay_text.c ---- */

/* The kernel "relay" for legs of these codes and finishes; legs: how many the table has, bases:
 * buffers of a launch at most. */
bool fac_nv_relay_text(const fac_nv_code *codes, int ncodes, const fac_nv_finish *finishes,
                       int nfinishes, bool fp64, int legs, int bases, fac_text *to);
/* The text of one finish; two that are alike have the same. */
bool fac_nv_finish_text(const fac_nv_finish *f, const char *name, bool fp64, fac_text *to);

/* ---- relay.c ---- */

extern const fac_relay fac_nv_relay;
#endif
