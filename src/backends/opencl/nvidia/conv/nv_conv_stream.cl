/* Convolutions on wgmma, persistent and specialised by warps: y[pixel][K] = patches of x [pixel][C
 * taps] times w, channels last.
 *
 * Every group of items stays and takes tile after tile.  Its first four warps only bring data: two
 * of them activations (16 bytes an item; MAPPED: one of them, boxes), one the packed weights (bulk
 * copies), one the operand that is added to the result.  The other warps, in CONSUMERS groups of
 * four, only multiply (nv_conv_stream_product.cl) and finish (nv_conv_stream_use.cl).  TEAM of them
 * share a tile, so with CONSUMERS > TEAM one team finishes its tile while the other one multiplies.
 *
 * A stage of A is AROWS rows of 128 bytes of channels, one of B BN rows of the packed weights; both
 * lie as wgmma's descriptors with a swizzle of 128 bytes want them.  Three ways to fill A:
 *   HALO   3 x 3, stride 1, padding 1: positions run over images that carry one column and one row
 *          of zeros (the right padding of a line is the left one of the next).  A stage holds the
 *          tile's positions and the line and pixel on both sides, so all nine taps read it through
 *          descriptors that are shifted by whole rows.
 *   MAPPED 1 x 1, stride 1, no padding, and x a matrix with a row for each position: one item asks
 *   the copy engine for a whole
 *          stage, by a tensor map (nv_maps.cl, in front of this text) that each group makes when it
 *          begins.  Copies of 16 bytes cost 9.7 clocks a row: more than what 128 channels of it are
 *          multiplied in.
 *   else   positions are the pixels of y, a stage holds one tap: any window, stride, dilation and
 *          padding, at most 32 taps.
 * POOL is a form of HALO: nv_conv_stream_pool.cl.
 *
 * PHASES > 1: a gradient by x with strides of 2, whose phases (nvidia/conv/conv.h) are done one
 * after the other, those with most taps first: a group has tiles of all of them, and ends with a
 * small one.  All have as many positions as the first; those that lie outside of the image are
 * nowhere.
 *
 * Written in front of this by nvidia/conv/conv_stream.c, after the text of nvidia/unit/epilogue.h:
 *   CONSUMERS, TEAM, ROWS (blocks of 64 rows of a consumer), BN, AROWS, SA, SB (stages), HALO,
 *   MAPPED
 *   MEM            an element of x and w
 *   BYTES          of an element of the result
 *   SLOTS          results go through local memory and leave it as whole rows of a tile, by turns
 *                  through so many places of each consumer (0: directly);  ADDED: extra ADDED - 1,
 *                  which has a row for each of them, comes that way (0: none)
 *   LOCAL_GET4(v, p), LOCAL_PUT4(p, v)   four elements of the result in local memory
 *   NEAR           rows of A are read again by other taps: through the first cache
 *   FORESEEN       1: extras are asked for before the products of their tile (foresee_row,
 *                  nvidia/conv/conv_foresee.c)
 *   AHEAD          groups of 16 channels whose extras are read before the first of them is finished
 *   SPLIT          1: products of f32 as three of TF32, x = high + low.  The matrix units see the
 *                  high part of what lies in A, since they drop the other bits; the consumers write
 *                  the low parts beside it.  B's stages have both
 *                  (nvidia/conv/conv.h).  Sums of SUMMED steps are added to others in f32: the
 *                                    units drop bits when they add.
 *   POOL           1: the largest of 2 x 2 neighbours is the result
 *   PHASES         2 or 4: of a strided gradient, all in this launch; 1: one of them, or there is
 *                  only one
 *   MOMENTS        1: mean and m2 of each channel are stored, too, of 64 positions (nv_moments.cl)
 *                  or of a group's tiles
 *   KEEPS          1: of a group's tiles (nv_conv_stream_end.cl)
 *   WGMMA(d, a, b), WGMMA_WAIT(d)   the instruction, and the wait for all of them */
#define ITEMS (128 * (CONSUMERS + 1))
#define TEAMS (CONSUMERS / TEAM)
#define BM (64 * ROWS * TEAM)
/* Positions of a tile; rows of a stage between the blocks of a consumer, and between consumers. */
#if POOL
#define PLACES (64 * TEAM)
#define SPAN (PLACES + 2)
#define BLOCK_ROWS SPAN
#define MEMBER_ROWS 64
#else
#define PLACES BM
#define BLOCK_ROWS 64
#define MEMBER_ROWS OWN_ROWS
#endif
#define FILLERS (MAPPED ? 1 : 64)
#define STEP_BYTES 128
#define A_BYTES (AROWS * STEP_BYTES)
#define B_BYTES (BN * STEP_BYTES * (1 + SPLIT))
/* Of results in local memory, in elements: neighbouring rows begin in other banks. */
#define PITCH (BN + 16)
#define OWN_ROWS (64 * ROWS)
#define SLOT (OWN_ROWS * PITCH)

/* A divisor as nv_divide takes it; multiplier 0: by one. */
typedef struct {
    uint multiplier, shift;
} divisor;
typedef struct {
    int in, out, origin, stride, far, taps;
} axis; /* nvidia/conv/conv.h */
typedef struct {
    long x, w, moments, maps; /* where they begin, in 16 bytes; in floats; in bytes */
    int positions, tiles, across,
        rows;           /* across: tiles along the rows of w, which are the channels of y */
    int blocks, pieces; /* of channels: 128 bytes, the last one filled up with zeros; 16 bytes */
    int x_image, x_row,
        x_column;    /* steps of x in 16 bytes; MAPPED: x_column, from position to position */
    int image, line; /* positions of an image, of a line of it */
    divisor by_image, by_line;
    axis tall, wide;
    int parts, first_part; /* of all phases: of 64 positions, KEEPS: groups of equal channels; this
                              one's */
    /* PHASES > 1: tiles and parts of a phase; from pixel to pixel of one; where each is (two bits,
     * the row's first); what those that begin with the second row or column see; from one's weights
     * to those of the next */
    int each, each_part, step_row, step_column, row, column, order;
    axis tall1, wide1;
    long w1, w2, w3;
} sizes;

#if PHASES > 1
/* By fields: a choice between structs would put them into memory. */
INLINE axis axis_of(const axis a, const axis b, int second) {
    axis to = a;
    to.out = second ? b.out : a.out;
    to.origin = second ? b.origin : a.origin;
    to.far = second ? b.far : a.far;
    to.taps = second ? b.taps : a.taps;
    return to;
}

/* What this tile of all is about, and which one of its phase it is. */
INLINE sizes phase_of(const sizes *all, int *tile) {
    sizes s = *all;
    const int rank = (*tile >= all->each) + (PHASES > 2 && *tile >= 2 * all->each) +
                     (PHASES > 3 && *tile >= 3 * all->each),
              place = all->order >> 2 * rank;
    *tile -= rank * all->each;
    s.row = place & 1;
    s.column = place >> 1 & 1;
    s.first_part += rank * all->each_part;
    s.tall = axis_of(all->tall, all->tall1, s.row);
    s.wide = axis_of(all->wide, all->wide1, s.column);
    if (rank > 0) s.w += all->w1;
    if (rank > 1) s.w += all->w2;
    if (rank > 2) s.w += all->w3;
    return s;
}
#define TAKE(all, tile) const sizes own = phase_of(all, &tile), *const s = &own;
#else
#define TAKE(all, tile) const sizes *const s = all;
#endif

INLINE uint quotient(uint x, divisor d) {
    return d.multiplier ? nv_divide(x, d.multiplier, d.shift) : x;
}
INLINE void warp_meet(void) { asm volatile("bar.warp.sync 0xffffffff;" ::: "memory"); }

typedef struct {
    int n, h, w;
} pixel;
INLINE pixel pixel_of(const sizes *s, uint p) {
    const uint n = quotient(p, s->by_image), q = p - n * s->image, h = quotient(q, s->by_line);
    return (pixel){ (int)n, (int)h, (int)(q - h * s->line) };
}

/* Where position p is in y; false: nowhere. */
INLINE bool find(const sizes *s, const ends *e, int p, spot *to) {
    const pixel at = pixel_of(s, p);
#if PHASES > 1
    *to = spot_of(e, at.n, 0, at.h * s->step_row + s->row, at.w * s->step_column + s->column);
#else
    *to = spot_of(e, at.n, 0, at.h, at.w);
#endif
    return p < s->positions &&
           (!(HALO || PHASES > 1) || (at.h < s->tall.out && at.w < s->wide.out));
}

/* ---- what the first four warps do ---- */

#if MAPPED
/* A warp makes the map, through 128 bytes of local memory, and its first lane asks for boxes.  Rows
 * after the last position and what is after the last channel come as zeros, and are counted like
 * all others. */
INLINE void bring_a(const sizes *s, global const char *x, global uchar *maps, uint room, uint to,
                    uint full, uint empty, int lane) {
    const ulong step = (ulong)s->x_column << 4;
    const nv_rows rows = {
        (ulong)x + ((ulong)s->x << 4), 8 * s->pieces, s->positions, 1, 1, step, step, step, AROWS
    };
    global uchar *map = maps_at(maps, s->maps, 1);
    int stage = 0;
    uint parity = 1;
    nv_map_make(room, map, rows, lane);
    if (lane) return;
    for (int tile = get_group_id(0); tile < s->tiles; tile += get_num_groups(0))
        for (int block = 0; block < s->blocks; block++) {
            nv_barrier_wait(empty + 8 * stage, parity);
            nv_barrier_expect(full + 8 * stage, A_BYTES);
            nv_map_load(to + stage * A_BYTES, map, block * (STEP_BYTES / 2),
                        tile / s->across * PLACES, 0, 0, full + 8 * stage);
            if (++stage == SA) {
                stage = 0;
                parity ^= 1;
            }
        }
}
#else
/* Row j of a stage of the tile that begins with position place0: where its pixel begins in x, in 16
 * bytes, and which taps see it (bits). */
#if POOL
INLINE int2 sight(const sizes *s, int place0, int j) {
    const int part = j / SPAN, p = place0 + j % SPAN - 1;
    if (p < 0 || p >= s->positions) return (int2)(0, 0);
    const pixel at = pixel_of(s, p);
    const int top = 2 * at.h + part - 1;
    const bool seen = (uint)top < (uint)s->tall.in && at.w < s->wide.in;
    return (int2)(at.n * s->x_image + top * s->x_row + at.w * s->x_column, seen);
}
#else
INLINE int2 sight(const sizes *s, int place0, int j) {
    const int p = place0 + j - (HALO ? s->line + 1 : 0);
    if (p < 0 || p >= s->positions) return (int2)(0, 0);
    const pixel at = pixel_of(s, p);
    const int top = HALO ? at.h : at.h * s->tall.stride + s->tall.origin,
              left = HALO ? at.w : at.w * s->wide.stride + s->wide.origin;
    uint seen = 0;
    for (int i = 0, k = 0; i < (HALO ? 1 : s->tall.taps); i++)
        for (int j = 0; j < (HALO ? 1 : s->wide.taps); j++, k++)
            if ((uint)(top + i * s->tall.far) < (uint)s->tall.in &&
                (uint)(left + j * s->wide.far) < (uint)s->wide.in)
                seen |= 1u << k;
    return (int2)(at.n * s->x_image + top * s->x_row + left * s->x_column, (int)seen);
}
#endif

/* Eight rows at a time, their places read first: the copies would keep the reads in order. */
INLINE void fill_rows(global const char *x, local const int2 *rows, uint to, int tap, int apart,
                      bool inside, int item) {
    const int first = item >> 3;
    const uint at = to + first * STEP_BYTES + (((item & 7) ^ first) << 4);
    for (int i = 0; i < AROWS / 8; i += 8) {
        int2 r[8];
        UNROLL
        for (int k = 0; k < 8; k++)
            if (i + k < AROWS / 8) r[k] = rows[first + 8 * (i + k)];
        UNROLL
        for (int k = 0; k < 8; k++)
            if (i + k < AROWS / 8) {
                const bool seen = inside && r[k].y >> tap & 1;
                global const char *from = x + ((long)(seen ? r[k].x + apart : 0) << 4);
                if (!NEAR)
                    nv_copy16(at + (i + k) * 8 * STEP_BYTES, from, seen ? 16 : 0);
                else
                    nv_copy16_near(at + (i + k) * 8 * STEP_BYTES, from, seen ? 16 : 0);
            }
    }
}

INLINE void bring_a(const sizes *all, global const char *x, local int2 *rows, uint to, uint full,
                    uint empty, int item) {
    int stage = 0;
    uint parity = 1;
    for (int next = get_group_id(0); next < all->tiles; next += get_num_groups(0)) {
        int tile = next;
        TAKE(all, tile)
        const int place0 = tile / s->across * PLACES;
        warp_meet();
        nv_meet(1, FILLERS);
        for (int j = item; j < AROWS; j += FILLERS) rows[j] = sight(s, place0, j);
        nv_meet(1, FILLERS);
        global const char *from = x + ((item & 7) << 4);
        for (int block = 0; block < s->blocks; block++, from += STEP_BYTES)
            for (int i = 0, tap = 0; i < (HALO ? 1 : s->tall.taps); i++)
                for (int j = 0; j < (HALO ? 1 : s->wide.taps); j++, tap++) {
                    nv_barrier_wait(empty + 8 * stage, parity);
                    fill_rows(from, rows, to + stage * A_BYTES, tap,
                              i * s->tall.far * s->x_row + j * s->wide.far * s->x_column,
                              8 * block + (item & 7) < s->pieces, item);
                    nv_barrier_arrive_copies(full + 8 * stage);
                    if (++stage == SA) {
                        stage = 0;
                        parity ^= 1;
                    }
                }
    }
    NV_COPIES_COMMIT();
    NV_COPIES_WAIT(0);
}
#endif

INLINE void bring_b(const sizes *all, global const char *w, uint to, uint full, uint empty) {
    int stage = 0;
    uint parity = 1;
    for (int next = get_group_id(0); next < all->tiles; next += get_num_groups(0)) {
        int tile = next;
        TAKE(all, tile)
        const int steps = s->blocks * s->tall.taps * s->wide.taps;
        global const char *from = w + (s->w << 4) + (long)(tile % s->across) * steps * B_BYTES;
        for (int step = 0; step < steps; step++, from += B_BYTES) {
            nv_barrier_wait(empty + 8 * stage, parity);
            nv_barrier_expect(full + 8 * stage, B_BYTES);
            nv_bulk_load(to + stage * B_BYTES, from, B_BYTES, full + 8 * stage);
            if (++stage == SB) {
                stage = 0;
                parity ^= 1;
            }
        }
    }
}

/* Bytes of a row of this tile's results. */
INLINE uint row_bytes(const sizes *s, int tile) {
    const int rest = s->rows - tile % s->across * BN;
    return (rest < BN ? rest : BN) * BYTES;
}

#if ADDED
/* Each lane brings rows of its own and says how many bytes they are. */
INLINE void bring_added(const sizes *all, const ends *e, uint to, uint full, uint empty,
                        int lane EXTRA_PARAMS) {
    int turn = 0;
    for (int next = get_group_id(0); next < all->tiles; next += get_num_groups(0), turn++) {
        int tile = next;
        TAKE(all, tile)
        const int use = turn / TEAMS;
        const uint bytes = row_bytes(s, tile);
        for (int k = 0; k < TEAM; k++) {
            const int c = (turn % TEAMS * TEAM + k) * SLOTS + use % SLOTS;
            spot at[2 * ROWS];
            bool there[2 * ROWS];
            int count = 0;
            UNROLL
            for (int i = 0; i < 2 * ROWS; i++) {
                there[i] = find(s, e, tile / s->across * BM + k * OWN_ROWS + lane + 32 * i, &at[i]);
                count += there[i];
            }
            nv_barrier_wait(empty + 8 * c, (use / SLOTS & 1) ^ 1);
            nv_barrier_expect(full + 8 * c, count * bytes);
            UNROLL
            for (int i = 0; i < 2 * ROWS; i++)
                if (there[i])
                    nv_bulk_load(to + (c * SLOT + (lane + 32 * i) * PITCH) * BYTES,
                                 ADDED_FROM + e->p[ADDED].at + at[i].at[ADDED] +
                                     tile % s->across * BN,
                                 bytes, full + 8 * c);
        }
    }
}
#endif
