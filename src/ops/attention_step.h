/* What makes and what computes nodes of attention_step share. */
#ifndef FACULA_OPS_ATTENTION_STEP_H
#define FACULA_OPS_ATTENTION_STEP_H
#include "facula/op.h"

/* Inputs: caches B,G,T,D and B,G,T,E; at, lengths integers [B]; q B,H,1,D or B,1,HD; k B,G,1,D, or
 * B,1,GD; v B,G,1,E or B,1,GE; cos, sin and positions of q and k as fac_rotary has them.  Outputs:
 * the caches with the new rows, which may be written over them, and y as q. */
enum {
    STEP_KEYS,
    STEP_VALUES,
    STEP_AT,
    STEP_Q,
    STEP_K,
    STEP_V,
    STEP_LENGTHS,
    STEP_COS,
    STEP_SIN,
    STEP_POSITIONS,
    STEP_INPUTS
};

typedef struct fac_attention_step_opts {
    int64_t q_heads;
    double scale, softcap;
    int64_t window, width;
    bool interleaved;
} fac_attention_step_opts;
#endif
