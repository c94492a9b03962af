/* Queries, keys and masks as attention and its gradient see them (attention_rows.c).
 *
 * With grouped queries the rows of all heads of q that share one of k and v are one list of
 * queries.  A block of that list is worked on with a query in each lane: arrays whose rows are
 * `wide` floats, of which the first n mean something. */
#ifndef FACULA_CPU_ATTENTION_ROWS_H
#define FACULA_CPU_ATTENTION_ROWS_H
#include "backends/cpu/attention/attention.h"
#include "backends/cpu/device/cpu.h"

/* Elements from one sequence, head and row to the next; a row is contiguous. */
typedef struct fac_attention_place {
    int64_t batch, head, row;
} fac_attention_place;

typedef struct fac_attention_shape {
    const fac_cpu *cpu;
    int64_t B, H, G, Q, T, D,
        E;              /* sequences, heads of q, of k and v, queries, keys, sizes of a head */
    int64_t past, rows; /* keys of the past; queries that share a head of k                  */
    double scale;
    bool causal;
    fac_dtype mask_type; /* FAC_NONE: there is none */
    int64_t mask_step[3],
        mask_keys; /* elements of the mask for a sequence, head, query; its last dim */
    int64_t mask_each,
        mask_group; /* sequences of a group; elements of the mask from one group to the next */
} fac_attention_shape;

typedef struct fac_attention_queries {
    const fac_attention_shape *a;
    int64_t batch, group, first, n, wide; /* queries first .. first + n - 1 of a group */
} fac_attention_queries;

/* Inputs 0, 1 and 2 of the node are q, k and v; past: keys that stand before k.  false: there is
 * nothing to do, or too much. */
bool fac_attention_shape_of(const fac_problem *p, const fac_cpu *cpu, const fac_operand *mask,
                            int64_t past, fac_attention_shape *to);
/* An operand with three dims is B, rows, heads size. */
fac_attention_place fac_attention_place_of(const fac_operand *o, int64_t heads);
/* Rows must lie contiguous; where they lie is free. */
void fac_attention_want_rows(fac_operand *o);

/* Calls f for every run of queries of one head: their first row, how far to the next, how many, and
 * the lane of the first. */
typedef void fac_attention_run(const fac_attention_queries *t, void *arg, float *row, int64_t step,
                               int64_t n, int64_t lane);
void fac_attention_each(const fac_attention_queries *t, const fac_attention_place *at, float *base,
                        fac_attention_run *f, void *arg);
/* to[column][query] = row[query][column], 0 in the lanes after the last query; and back. */
void fac_attention_turn_in(const fac_attention_queries *t, const fac_attention_place *at,
                           const float *base, float *to, int64_t columns);
void fac_attention_turn_out(const fac_attention_queries *t, const fac_attention_place *at,
                            float *base, const float *from, int64_t columns);

/* The last key that each query sees, of a sequence of `length` keys; `before` of them stand before
 * the one at query 0.  Returns how many keys any of them sees; *least: the last that all see. */
int64_t fac_attention_last(const fac_attention_queries *t, int64_t before, int64_t length,
                           float *last, float *least);

/* Says in b what the mask adds to some keys: one number for each in `bias`, or rows in `rows`;
 * `stage` is as large as `rows`. false when it is found that none of them takes part. */
bool fac_attention_mask(const fac_attention_queries *t, const void *mask, int64_t first,
                        int64_t keys, float *bias, float *rows, float *stage,
                        fac_attention_block *b);
#endif
