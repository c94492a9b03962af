/* The frame of nv_relay.cl, after the text of all legs: the keeper, and the way of the other warps
 * through the table. */
INLINE uint relay_count(global const uint *p) {
    uint v;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}
/* Forgets what the first cache knows, once: looking again and again with an acquire would do that
 * each time. */
INLINE void relay_acquire(global const uint *p) {
    uint v;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
}
INLINE void relay_come(global uint *p) {
    asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(p) : "memory");
}
INLINE void relay_raise(uint at, uint level) {
    asm volatile("st.release.cta.shared.u32 [%0], %1;" ::"r"(at), "r"(level) : "memory");
}

/* This group's share of a leg's weights into the second cache. */
INLINE void relay_ask(local const leg *l, local const ulong *base, int groups, int lane) {
    if (l->weights <= 0) return;
    global const uchar *w = relay_at(l, base, W, l->w);
    const int each = (l->weights + groups - 1) / groups, from = (int)get_group_id(0) * each,
              n = min(each, l->weights - from);
    for (int i = lane; i < n; i += 32)
        asm volatile("prefetch.global.L2 [%0];" ::"l"(w + (size_t)(from + i) * 128) : "memory");
}

/* A group that never comes would be a fault of the device or of this kernel: the launch ends with
 * an error then, some ten seconds later, instead of never. */
INLINE void relay_look(global const uint *meet, uint all) {
    for (uint turns = 0; relay_count(meet) < all; turns++)
        if (turns > 20000000u) asm volatile("trap;");
    relay_acquire(meet);
}

INLINE void relay_keep(local const leg *legs, int n, local const ulong *base, global uint *meet,
                       int groups, int lane, uint flag) {
    uint level = 1;
    for (int i = 0; i < n; level++) {
        int next = i + 1;
        while (next < n && !legs[next].fresh) next++;
        for (int k = next; k < n && (k == next || !legs[k].fresh); k++)
            relay_ask(&legs[k], base, groups, lane);
        nv_meet(1, ALL_ITEMS);
        if (lane == 0) {
            if (next < n) {
                relay_come(meet);
                relay_look(meet, level * groups);
                relay_raise(flag, level);
            } else if (level > 1 && nv_count(meet) == level * groups - 1)
                *meet = 0;
        }
        asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");
        i = next;
    }
}

kernel GROUP(ALL_ITEMS) void relay(global uint *meet, ulong meet_at, global const uchar *table,
                                   ulong table_at, int first, int n BASES) {
    local leg legs[LEGS];
    local ulong base[BASES_MOST + 1];
    local uint raised;
#if PARTS_FLOATS
    local float4 parts[2 * WARPS * PARTS_FLOATS / 4];
#else
    local float4 parts[1];
#endif
    const int item = get_local_id(0), warp = item >> 5, groups = get_num_groups(0);
    global const ulong *from = (global const ulong *)(table + table_at) + first * (LEG_WORDS / 2);
    _Pragma("unroll 8") for (int i = item; i < n * (LEG_WORDS / 2);
                             i += ALL_ITEMS)((local ulong *)legs)[i] = from[i];
    if (item == 0) {
        raised = 0;
        base[ZEROS] = (ulong)meet + meet_at + 128;
    }
    BASES_FILL
    barrier(CLK_LOCAL_MEM_FENCE);
    meet = (global uint *)((global uchar *)meet + meet_at);
    if (warp == WARPS) {
        relay_keep(legs, n, base, meet, groups, item & 31, LOCAL_AT(&raised));
        return;
    }
    meetings m = { 0, 0, LOCAL_AT(&raised), 0 };
    for (int i = 0; i <= n; i++) {
        local const leg *l = &legs[i];
        if (i == n || (i && l->fresh)) {
            relay_wait(&m);
            nv_come(1, ALL_ITEMS);
            m.level++;
        }
        if (i == n) break;
        switch (l->code) { LEG_CASES }
    }
}
