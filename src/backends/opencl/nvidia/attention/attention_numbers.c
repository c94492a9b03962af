/* What the kernels of attention are told: see attention.h. */
#include "backends/opencl/nvidia/attention/attention.h"

void fac_nv_heads_numbers(const fac_nv_heads *h, fac_cl_call *c) {
    fac_cl_call_number(c, h->batch);
    fac_cl_call_number(c, h->head);
    fac_cl_call_number(c, h->row);
}

void fac_nv_attention_mask_numbers(const fac_nv_attention *a, fac_cl_call *c) {
    const fac_nv_mask *m = &a->mask;
    const int64_t step[] = { m->each, m->group, m->batch, m->head, m->row, m->key };
    for (int k = 0; k < 6; k++) fac_cl_call_number(c, step[k]);
    fac_cl_call_real(c, a->scale, FAC_F32);
}

void fac_nv_attention_mask_buffer(const fac_nv_attention *a, const fac_problem *p, int mask,
                                  fac_cl_call *c) {
    fac_cl_call_in(c, p, a->mask.type == FAC_NONE ? 0 : mask);
}

void fac_nv_attention_numbers(const fac_nv_attention *a, int64_t tiles, fac_cl_call *c) {
    const int64_t numbers[] = { a->H, a->H / a->G, a->Q, a->T, tiles, 0, a->D, a->E };
    fac_cl_call_numbers(c, numbers, sizeof numbers / sizeof *numbers);
    fac_nv_heads_numbers(&a->q, c);
    fac_nv_heads_numbers(&a->y, c);
    fac_nv_heads_numbers(&a->k, c);
    fac_nv_heads_numbers(&a->v, c);
    fac_nv_attention_mask_numbers(a, c);
}
