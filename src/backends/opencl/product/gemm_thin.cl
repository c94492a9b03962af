/* A matrix product with few rows: bound by reading b once, so every item keeps the sums of all MR
 * rows for its columns and reads of b what neighbouring items do not.
 *
 * Without ALONG_N the terms of a column are neighbours: L items do CN columns together, V terms at
 * a time, AHEAD times at once. With it columns are: an item does V of them (CN == V), ACROSS items
 * lie side by side and L of those in the direction of the terms.  What L items have is added up as
 * a tree in local memory, in a fixed order.  ALIGNED: V neighbours begin at a multiple of V.
 * B_F16: b lies as gemm_pack_f16.cl leaves it, eight terms are a load.
 * ONCE: b does not fit the second cache, so that nothing of it is there when it is read again: it
 * is the first to make room, and what came before and comes after it stays.  16 bytes at a time, on
 * NVIDIA.
 * PARTIAL: sums of a part of the terms go to y as they are, [part][batch][M][N]. */
#define OUTS (MR * CN)
#define TEAMS (ITEMS / L)
#if V == 1
#define VEC ACC
#define LOADS(p, i) LOAD(p, i)
#else
#define VEC FAC_CAT(ACC, V)
#if defined(ALIGNED) && V == 8
#define LOADS(p, i)                                                                                \
    ((VEC)(*(global const float4 *)((p) + (i)), *(global const float4 *)((p) + (i) + 4)))
#elif defined(ALIGNED)
#define LOADS(p, i) (*(global const VEC *)((p) + (i)))
#else
#define LOADS(p, i) FAC_CAT(vload, V)(0, (p) + (i))
#endif
#endif
#define UNROLL _Pragma("unroll")
/* Terms of b are neighbours where columns are not, and vectors are of neighbours in a, too. */
#if V == 1
#define A_AT(m, k) ((m) * s.a.row + (k) * s.a.column)
#else
#define A_AT(m, k) ((m) * s.a.row + (k))
#endif

/* Elements of b as they are loaded; WIDE: as they are multiplied. */
#ifdef B_F16
#define MEM_B ushort
#define LOAD_B(p, i) fac_load_f16(p, i)
#define RAW uint4
static inline VEC wide(uint4 words) {
    ushort h[8];
    fac_split(words, h);
    return (VEC)(fac_from_f16(h[0]), fac_from_f16(h[1]), fac_from_f16(h[2]), fac_from_f16(h[3]),
                 fac_from_f16(h[4]), fac_from_f16(h[5]), fac_from_f16(h[6]), fac_from_f16(h[7]));
}
#define WIDE(x) wide(x)
#else
#define MEM_B MEM
#define LOAD_B(p, i) LOAD(p, i)
#define RAW VEC
#define WIDE(x) (x)
#endif

#ifdef ONCE
static inline uint4 passing(global const void *p, ulong policy) {
    uint x, y, z, w;
    asm volatile("ld.global.nc.L1::no_allocate.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
                 : "=r"(x), "=r"(y), "=r"(z), "=r"(w) : "l"(p), "l"(policy));
    return (uint4)(x, y, z, w);
}
#ifdef B_F16
#define LOADS_B(p, i) passing((p) + (i), policy)
#else
#define LOADS_B(p, i) as_float4(passing((p) + (i), policy))
#endif
#elif defined(B_F16)
#define LOADS_B(p, i) (*(global const uint4 *)((p) + (i)))
#else
#define LOADS_B(p, i) LOADS(p, i)
#endif

/* The lanes of a vector, in pairs. */
static inline ACC lanes_of(VEC v) {
#if V == 1
    return v;
#else
    ACC x[V];
    FAC_CAT(vstore, V)(v, 0, x);
    UNROLL for (int n = V / 2; n > 0; n /= 2)
        UNROLL for (int l = 0; l < n; l++) x[l] += x[l + n];
    return x[0];
#endif
}

#ifdef FAC_EXCHANGE
EXCHANGER(exchanged, ACC)
#endif

kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void product(
    const shape s, global const MEM *restrict a, global const MEM_B *restrict b,
    global RESULT *y EXTRA_PARAMS) {
    const int id = get_local_id(0), M = s.M, N = s.N;
    const long zi = get_group_id(2) % s.batch, part = get_group_id(2) / s.batch;
    BATCH(zi);
    const int first = part * s.each_k, end = min((int)s.K, first + (int)s.each_k);
    a += START(s.a);
    b += START(s.b);
    ACC out[OUTS];
#ifdef ALONG_N
    const int lane = id / ACROSS, n0 = (get_group_id(0) * ACROSS + id % ACROSS) * V;
    b += min(n0, N - V);
    VEC sum[MR];
    UNROLL for (int m = 0; m < MR; m++) sum[m] = 0;
    _Pragma("unroll 4") for (int k = first + lane; k < end; k += L) {
        const VEC w = LOADS(b, k * s.b.row);
        UNROLL
        for (int m = 0; m < MR; m++)
            sum[m] = MULTIPLY_ADD((VEC)(LOAD(a, m * s.a.row + k * s.a.column)), w, sum[m]);
    }
    /* the last item reads columns of its neighbour, too, where they do not come out even */
    const int shift = max(n0 - (N - V), 0);
    UNROLL for (int m = 0; m < MR; m++) {
        ACC x[V];
#if V == 1
        x[0] = sum[m];
#else
        FAC_CAT(vstore, V)(sum[m], 0, x);
#endif
        for (int j = 0; j < V; j++) out[m * V + j] = x[min(j + shift, V - 1)];
    }
#else
    const int lane = id % L, n0 = (get_group_id(0) * TEAMS + id / L) * CN,
              whole = first + (end - first) / V * V;
    global const MEM_B *column[CN];
#ifdef ONCE
    ulong policy;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
#endif
    VEC sum[OUTS];
    UNROLL for (int j = 0; j < CN; j++) column[j] = b + min(n0 + j, N - 1) * s.b.column;
    UNROLL for (int o = 0; o < OUTS; o++) sum[o] = 0;
    int k = first + lane * V;
#if AHEAD > 1
    /* all loads of AHEAD steps are on the way before the first is used */
    for (; k + (AHEAD - 1) * L * V < whole; k += AHEAD * L * V) {
        RAW w[AHEAD][CN];
        UNROLL for (int u = 0; u < AHEAD; u++)
            UNROLL for (int j = 0; j < CN; j++) w[u][j] = LOADS_B(column[j], k + u * L * V);
        UNROLL for (int u = 0; u < AHEAD; u++)
            UNROLL for (int m = 0; m < MR; m++) {
                const VEC x = LOADS(a, A_AT(m, k + u * L * V));
                UNROLL
                for (int j = 0; j < CN; j++)
                    sum[m * CN + j] = MULTIPLY_ADD(x, WIDE(w[u][j]), sum[m * CN + j]);
            }
    }
#endif
    _Pragma("unroll 4") for (; k < whole; k += L * V) {
        RAW w[CN];
        UNROLL for (int j = 0; j < CN; j++) w[j] = LOADS_B(column[j], k);
        UNROLL for (int m = 0; m < MR; m++) {
            const VEC x = LOADS(a, A_AT(m, k));
            UNROLL
            for (int j = 0; j < CN; j++)
                sum[m * CN + j] = MULTIPLY_ADD(x, WIDE(w[j]), sum[m * CN + j]);
        }
    }
    UNROLL for (int o = 0; o < OUTS; o++) out[o] = lanes_of(sum[o]);
    for (int i = whole + lane; i < end; i += L)
        UNROLL for (int o = 0; o < OUTS; o++)
            out[o] += LOAD(a, A_AT(o / CN, i)) * LOAD_B(column[o % CN], i);
#endif

#if L > 1
#ifdef ALONG_N
    enum { APART = ACROSS };
#else
    enum { APART = 1 };
#endif
    /* items of a subgroup read each other's registers, what is left goes through local memory */
    local ACC tree[OUTS][ITEMS];
    int within = 1;
#ifdef FAC_EXCHANGE
    for (; within < L && within * APART < fac_lanes(); within *= 2)
        UNROLL for (int o = 0; o < OUTS; o++) out[o] += exchanged(out[o], within * APART);
#endif
    if (within < L) {
        UNROLL for (int o = 0; o < OUTS; o++) tree[o][id] = out[o];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int n = L / 2; n >= within; n /= 2) {
            if (lane < n)
                UNROLL for (int o = 0; o < OUTS; o++) tree[o][id] += tree[o][id + n * APART];
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        UNROLL
        for (int o = 0; o < OUTS; o++) out[o] = tree[o][id - lane * APART + lane % within * APART];
    }
#endif

#ifdef PARTIAL
    y += s.parts + (part * s.batch + zi) * M * (long)N;
#else
    EXTRA_STARTS
    y += START(s.y);
#endif
    UNROLL
    for (int o = 0; o < OUTS; o++) { /* each lane its own of them, which stay in registers */
        const int m = o / CN, n = n0 + o % CN;
        if (o % L != lane || n >= N) continue;
#ifdef B_F16
        out[o] *= ((global const float *)(b + N * s.b.column))[n];
#endif
#ifdef PARTIAL
        y[m * (long)N + n] = out[o];
#else
        STORE(y, m * s.y.row + n * s.y.column, FINISH(out[o], m, 0, n));
#endif
    }
}
