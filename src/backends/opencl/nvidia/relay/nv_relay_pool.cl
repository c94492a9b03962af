/* A leg that is a pool of an image with channels last, or the mean of whole planes; an item makes
 * four channels of a pixel, whose results may lie apart (y_channel).
 *
 *   AVERAGE             the sum of what is inside, times 1 / taps (scale), or by how many taps are
 *                       inside where scale is 0
 *   XMEM, RESULT, FOUR, PUT, ROUND  as in nv_relay_conv.cl; ROUND: to what RESULT can hold */
INLINE void NAME(leg)(local const leg *l, local const ulong *base, meetings *m) {
    const int lane = relay_item() & 31, all = l->tiles, step = get_num_groups(0) * ITEMS,
              taps = l->taps[0] * l->taps[1];
    global const XMEM *x = (global const XMEM *)relay_at(l, base, X, l->x);
    for (int first = relay_first(l); first < all; first += step) {
        const relay_quad q = relay_quad_of(l, first, lane);
        global const XMEM *from = x + (q.p.image * l->image + q.c);
        float best[4], add[4] = { 0, 0, 0, 0 };
#ifdef AVERAGE
        const float start = 0;
        int inside = 0;
#else
        const float start = -INFINITY;
#endif
        UNROLL
        for (int j = 0; j < 4; j++) best[j] = start;
        relay_wait(m);
        int r = 0, s = 0;
        _Pragma("unroll 8") for (int k = 0; k < taps; k++) {
            const int row = q.h + r * l->far[0], column = q.v + s * l->far[1];
            const int good = (uint)row < (uint)l->in[0] && (uint)column < (uint)l->in[1];
            float see[4];
            FOUR(see, from + (good ? row * l->step[0] + column * l->step[1]
                                   : 0)); /* a branch would wait for each */
            if (++s == l->taps[1]) s = 0, r++;
#ifdef AVERAGE
            inside += good;
            UNROLL
            for (int j = 0; j < 4; j++) best[j] += good ? see[j] : 0;
#else
            UNROLL
            for (int j = 0; j < 4; j++) best[j] = nv_larger(best[j], good ? see[j] : start);
#endif
        }
#ifdef AVERAGE
        const float by = l->scale != 0 ? l->scale : 1.0f / (float)max(inside, 1);
        UNROLL
        for (int j = 0; j < 4; j++) best[j] *= by;
#endif
        if (l->base[ADD] >= 0)
            FOUR_ADD(add, (global const ADDMEM *)relay_at(l, base, ADD, l->add) +
                              relay_place(q.p, l->add_step) + q.c);
        relay_finish(l->finish, best, add, add);
        if (!q.there) continue;
        global RESULT *to = (global RESULT *)relay_at(l, base, Y, l->y) +
                            relay_place(q.p, l->y_step) + q.c * l->y_channel;
        if (l->y_channel == 1) {
            PUT(to, best);
            continue;
        }
        UNROLL
        for (int j = 0; j < 4; j++) to[j * l->y_channel] = ROUND(best[j]);
    }
}
