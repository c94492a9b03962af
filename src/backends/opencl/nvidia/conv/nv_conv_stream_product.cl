/* What the consumers of nv_conv_stream.cl do with the stages that come: they multiply.
 *
 * Teams multiply one after the other: a barrier only tells its last phase from the one before, so
 * nobody may wait for a stage that another team has still to wait for.  `next` of multiply() is
 * where the other team waits. */

enum { EMPTY_TILE = 5 }; /* and the next two: barriers that nothing else uses */

/* A ring of stages as one of its readers sees it. */
typedef struct {
    uint base, at, full, empty, parity;
    int stage;
} ring; /* at: of this reader's rows */
INLINE void step_on(ring *r, int of) {
    if (++r->stage == of) {
        r->stage = 0;
        r->parity ^= 1;
    }
}
/* Past the stages of another team's tile. */
INLINE void pass(ring *r, int count, int of) {
    const int next = r->stage + count;
    r->stage = next % of;
    r->parity ^= next / of & 1;
}

/* A tap of the halo is as many rows further on. */
INLINE int rows_apart(const sizes *s, int i, int j) {
#if POOL
    return i * SPAN + j;
#else
    if (!HALO) return 0;
    const int row = s->tall.origin + 1 + i * s->tall.far;
    return row * s->line + s->wide.origin + 1 + j * s->wide.far;
#endif
}

#if SPLIT
INLINE void local_store4(uint at, const uint *v) {
    asm volatile("st.shared.v4.u32 [%0], {%1,%2,%3,%4};" ::"r"(at), "r"(v[0]), "r"(v[1]), "r"(v[2]),
                 "r"(v[3])
                 : "memory");
}

/* Waits for a stage of A and writes the low parts of its rows, of those that this consumer
 * multiplies: `low` bytes further on. */
INLINE void split(const ring *a, uint low, int item) {
    const int items = HALO ? 128 * CONSUMERS : 128;
    const int chunks = 8 * (HALO ? AROWS : OWN_ROWS);
    const int first = HALO ? item : item & 127;
    const uint from = (HALO ? a->base : a->at) + a->stage * A_BYTES;
    nv_barrier_wait(a->full + 8 * a->stage, a->parity);
    for (int c = first; c < chunks; c += 2 * items) {
        uint v[2][4];
        UNROLL for (int i = 0; i < 2; i++)
            if (c + i * items < chunks) nv_local_load4(v[i], from + 16 * (c + i * items));
        UNROLL for (int i = 0; i < 2; i++)
            if (c + i * items < chunks) {
                UNROLL for (int k = 0; k < 4; k++) v[i][k] = nv_low(as_float(v[i][k]));
                local_store4(from + low + 16 * (c + i * items), v[i]);
            }
    }
    nv_proxy_fence();
    if (HALO) nv_meet(2, items);
    else nv_meet(2 + (item >> 7), items);
}

/* One step as three products; the next stage of A is split while they run. */
INLINE void multiply(const sizes *s, float sums[ROWS][BN / 2], ring *a, ring *b, uint low, int item,
                     uint next) {
    const bool speaks = (item & 127) == 0;
    float part[ROWS][BN / 2];
    int done = 0;
    UNROLL for (int m = 0; m < ROWS; m++)
        UNROLL for (int i = 0; i < BN / 2; i++) sums[m][i] = part[m][i] = 0;
    if (s->blocks * s->tall.taps * s->wide.taps == 0) {
        if (TEAMS > 1 && speaks) nv_barrier_arrive(next);
        return;
    }
    split(a, low, item);
    for (int block = 0; block < s->blocks; block++)
        for (int i = 0; i < s->tall.taps; i++)
            for (int j = 0; j < s->wide.taps; j++) {
                const bool last_tap = i == s->tall.taps - 1 && j == s->wide.taps - 1;
                const bool last = last_tap && block == s->blocks - 1;
                const int apart = rows_apart(s, i, j);
                const uint at = a->at + a->stage * A_BYTES + apart * STEP_BYTES;
                const uint of_b = b->at + b->stage * B_BYTES;
                nv_barrier_wait(b->full + 8 * b->stage, b->parity);
                const ulong high_a = nv_descriptor128(at), low_a = nv_descriptor128(at + low);
                const ulong high_b = nv_descriptor128(of_b),
                            low_b = nv_descriptor128(of_b + BN * STEP_BYTES);
                NV_WGMMA_FENCE();
                UNROLL for (int m = 0; m < ROWS; m++) {
                    const int rows = m * (64 * STEP_BYTES >> 4);
                    UNROLL for (int k = 0; k < 4; k++) {
                        WGMMA(part[m], low_a + 2 * k + rows, high_b + 2 * k);
                        WGMMA(part[m], high_a + 2 * k + rows, low_b + 2 * k);
                        WGMMA(part[m], high_a + 2 * k + rows, high_b + 2 * k);
                    }
                }
                NV_WGMMA_COMMIT();
                if (TEAMS > 1 && speaks && last) nv_barrier_arrive(next);
                ring after = *a;
                step_on(&after, SA);
                if (HALO ? i == 1 && j == 1 && block < s->blocks - 1 : !last)
                    split(&after, low, item);
                UNROLL for (int m = 0; m < ROWS; m++) WGMMA_WAIT(part[m]);
                if (speaks) nv_barrier_arrive(b->empty + 8 * b->stage);
                step_on(b, SB);
                if (!HALO || last_tap) {
                    if (speaks) nv_barrier_arrive(a->empty + 8 * a->stage);
                    *a = after;
                }
                if (++done == SUMMED || last) {
                    UNROLL for (int m = 0; m < ROWS; m++)
                        UNROLL for (int e = 0; e < BN / 2; e++) {
                            sums[m][e] += part[m][e];
                            part[m][e] = 0;
                        }
                    done = 0;
                }
            }
}
#else
INLINE void multiply(const sizes *s, float sums[ROWS][BN / 2], ring *a, ring *b, uint low, int item,
                     uint next) {
    const bool speaks = (item & 127) == 0;
    int old_a = -1, old_b = -1;
    uint at = 0;
    UNROLL for (int m = 0; m < ROWS; m++) UNROLL for (int i = 0; i < BN / 2; i++) sums[m][i] = 0;
    for (int block = 0; block < s->blocks; block++)
        for (int i = 0; i < s->tall.taps; i++)
            for (int j = 0; j < s->wide.taps; j++) {
                if (!HALO || (i == 0 && j == 0)) {
                    nv_barrier_wait(a->full + 8 * a->stage, a->parity);
                    if (!MAPPED) nv_proxy_fence();
                    at = a->at + a->stage * A_BYTES;
                }
                nv_barrier_wait(b->full + 8 * b->stage, b->parity);
                const int apart = rows_apart(s, i, j);
                const ulong from_a = nv_descriptor128(at + apart * STEP_BYTES),
                            from_b = nv_descriptor128(b->at + b->stage * B_BYTES);
                NV_WGMMA_FENCE();
                UNROLL for (int k = 0; k < 4; k++)
                    UNROLL for (int m = 0; m < ROWS; m++)
                        WGMMA(sums[m], from_a + 2 * k + m * (BLOCK_ROWS * STEP_BYTES >> 4),
                              from_b + 2 * k);
                NV_WGMMA_COMMIT();
                NV_WGMMA_WAIT(1);
                if (speaks) {                   /* the step before this one has read its stages */
                    if (old_b >= 0) nv_barrier_arrive(b->empty + 8 * old_b);
                    if (old_a >= 0) nv_barrier_arrive(a->empty + 8 * old_a);
                }
                old_b = b->stage;
                old_a = -1;
                step_on(b, SB);
                if (!HALO || (i == s->tall.taps - 1 && j == s->wide.taps - 1)) {
                    old_a = a->stage;
                    step_on(a, SA);
                }
            }
    if (TEAMS > 1 && speaks) nv_barrier_arrive(next);
    UNROLL for (int m = 0; m < ROWS; m++) WGMMA_WAIT(sums[m]);
    if (speaks && old_b >= 0) {
        nv_barrier_arrive(b->empty + 8 * old_b);
        nv_barrier_arrive(a->empty + 8 * old_a);
    }
}
#endif
