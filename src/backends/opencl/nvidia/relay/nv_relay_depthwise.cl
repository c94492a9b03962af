/* A leg that is a convolution of each channel alone, channels last; an item makes four channels of
 * a pixel.  Weights are taken as they are, [channel][tap].
 *
 *   R, S                window
 *   XMEM, RESULT, FOUR, PUT, FOUR_BIAS, FOUR_ADD  as in nv_relay_conv.cl; FOUR loads x's and w's */
#define TAPS (R * S)
INLINE void NAME(leg)(local const leg *l, local const ulong *base, meetings *m) {
    const int lane = relay_item() & 31, all = l->tiles, step = get_num_groups(0) * ITEMS;
    global const XMEM *x = (global const XMEM *)relay_at(l, base, X, l->x),
                      *w = (global const XMEM *)relay_at(l, base, W, l->w);
    global const XMEM *zeros = (global const XMEM *)base[ZEROS];
    if (!l->early) relay_wait(m);
    for (int first = relay_first(l); first < all; first += step) {
        const relay_quad q = relay_quad_of(l, first, lane);
        global const XMEM *from =
            x + (q.p.image * l->image + q.h * l->step[0] + q.v * l->step[1] + q.c);
        float sum[4] = { 0, 0, 0, 0 }, bias[4] = { 0, 0, 0, 0 }, add[4] = { 0, 0, 0, 0 };
        if (l->base[BIAS] >= 0)
            FOUR_BIAS(bias, (global const BIASMEM *)relay_at(l, base, BIAS, l->bias) + q.c);
        float by[4 * TAPS];
        UNROLL
        for (int k = 0; k < TAPS; k++) FOUR(by + 4 * k, w + (size_t)q.c * TAPS + 4 * k);
        relay_wait(m);
        UNROLL
        for (int r = 0; r < R; r++) {
            float see[S][4];
            UNROLL
            for (int s = 0; s < S; s++) { /* a branch would wait for each */
                const int inside = (uint)(q.h + r * l->far[0]) < (uint)l->in[0] &&
                                   (uint)(q.v + s * l->far[1]) < (uint)l->in[1];
                FOUR(see[s], inside
                                 ? from + (r * l->far[0] * l->step[0] + s * l->far[1] * l->step[1])
                                 : zeros);
            }
            UNROLL
            for (int s = 0; s < S; s++) UNROLL
            for (int j = 0; j < 4; j++) sum[j] += see[s][j] * by[j * TAPS + r * S + s];
        }
        if (l->base[ADD] >= 0)
            FOUR_ADD(add, (global const ADDMEM *)relay_at(l, base, ADD, l->add) +
                              relay_place(q.p, l->add_step) + q.c);
        relay_finish(l->finish, sum, bias, add);
        if (q.there)
            PUT((global RESULT *)relay_at(l, base, Y, l->y) + relay_place(q.p, l->y_step) + q.c,
                sum);
    }
}
#undef TAPS
