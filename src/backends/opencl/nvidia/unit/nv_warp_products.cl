/* Products of a warp whose operands are in its registers, of BM pixels and BN channels: what
 * conv/warps and convolutions in relays share.
 *
 *   NAME(x)             x of this text alone
 *   BM, BN, BK          pixels, channels of y and terms of a tile; BM and BN are multiples of 16
 *   PARTS               2: weights have high and low parts (3XTF32), and sums move on after each
 *                       k-tile
 *   XMEM                type of x's elements in memory
 *   MMA(d, a, b)        the instruction */
#define LOADS (BK / (int)(64 / sizeof(XMEM)))   /* of 16 bytes, by one lane of a row of a k-tile */
#define EIGHTS (BN / 8)
#define SIXTEENS (BN / 16)
#define SUMS (BM * BN / 32)                     /* of a lane */
#define CHAINS                                                                                     \
    (SUMS == 8                                                                                     \
         ? 2                                                                                       \
         : 1) /* sums of a result, added at the end, so that more products depend on no other */
#define QUADS                                                                                      \
    (BM / 8 * SIXTEENS) /* fours of sums of a lane: number q is of pixel 8 (q / SIXTEENS) + g */

/* sums: [chain][16 pixels][8 channels][4]; a: [pixel][load][4].  Products that follow each other
 * are of different sums, since one that waits for the sum of the one before takes several times as
 * long. */
INLINE void NAME(multiply)(float *sums, const uint *a, const uint *b, const uint *low) {
#if PARTS == 2
    float part[CHAINS * SUMS];
    UNROLL for (int q = 0; q < CHAINS * SUMS; q++) part[q] = 0;
#endif
    UNROLL for (int j = 0; j < LOADS; j++) UNROLL for (int h = 0; h < 2; h++) {
#if PARTS == 2
        uint high[BM / 16][4], rest[BM / 16][4];
#endif
        UNROLL for (int turn = 0; turn < (PARTS == 2 ? 3 : 1); turn++)
            UNROLL for (int m = 0; m < BM / 16; m++) {
                const uint *one = a + 4 * (2 * m * LOADS + j) + 2 * h, *other = one + 4 * LOADS;
                const uint raw[4] = { one[0], other[0], one[1], other[1] };
#if PARTS == 2
                UNROLL for (int e = 0; e < 4 && !turn; e++) {
                    high[m][e] = nv_high(as_float(raw[e]));
                    rest[m][e] = nv_low(as_float(raw[e]));
                }
#endif
                UNROLL for (int n = 0; n < EIGHTS; n++) {
                    const int at = 4 * (n * LOADS + j) + 2 * h,
                              q = 4 * (m * EIGHTS + n) + h % CHAINS * SUMS;
#if PARTS == 2
                    const uint *of_b = turn == 1 ? low : b;
                    nv_mma_tf32(part + q, turn ? high[m] : rest[m], of_b + at);
#else
                    MMA(sums + q, raw, b + at);
#endif
                }
            }
    }
#if PARTS == 2
    UNROLL for (int q = 0; q < CHAINS * SUMS; q++) sums[q] += part[q];
#endif
}

/* Sums of all chains to those of the first. */
INLINE void NAME(join)(float *sums) {
    UNROLL for (int q = SUMS; q < CHAINS * SUMS; q++) sums[q - SUMS] += sums[q];
}

INLINE float4 NAME(four_of)(const float *sums, int q) {
    const int c = q % SIXTEENS, i = q / SIXTEENS;
    const float *d = sums + 4 * ((i / 2) * EIGHTS + 2 * c) + 2 * (i & 1);
    return (float4)(d[0], d[1], d[4], d[5]);
}
