/* Many steps of a run in one launch: a persistent kernel, a group for each compute unit, all of
 * which stay until the end.
 *
 * A table (nvidia/relay/relay.h) names the legs: what each step is, its sizes, where its operands
 * lie after the buffers that the launch has.  Legs of one level do not depend on each other; after
 * a level all groups meet.  Between two kernels a GPU is idle for 2 to 4 us, a meeting takes about
 * one, and most of it passes beside work that does not depend on it:
 *
 *   - the last warp of a group does nothing but meet the others: it counts up a number in memory
 *   and looks until all have come.
 *     Meanwhile it asks the second cache for its share of the next level's weights.
 *   - the others begin with the next level at once, find their pixels and load their first weights,
 *   and wait only before they
 *     read what the level before has written.
 *
 * What is written by other groups must not come from caches that a kernel may rely on: it is read
 * by plain loads after the keeper's acquire, never by ld.global.nc; weights and biases, which no
 * leg writes, may be.
 *
 *   WARPS, LEGS      of a group, without the keeper; legs at most
 *   PARTS_FLOATS     local memory for sums of a warp that others add up; 0: no leg has such
 *   LEG_CASES        of the switch over what a leg is */
#define ITEMS (32 * WARPS)
#define ALL_ITEMS (ITEMS + 32)

typedef struct {
    long x, w, y, bias, add;             /* bytes after their buffers */
    int base[5];                         /* numbers of those; -1: there is none */
    int code, fresh, shift, team, tiles; /* fresh: the first of a level; team: warps for a tile;
                                            tiles: or blocks of them */
    int finish, weights, early; /* weights: so many lines of 128 bytes of them are asked for ahead;
                                   early: they and the bias were there before the launch */
    int image, step[2], in[2], out[2], origin[2], stride[2], far[2],
        taps[2];                   /* of x: rows and columns */
    uint multiplier[2], shifts[2]; /* quotients by out */
    int pixels, rows, channels, row_tiles, columns, k_tiles, each,
        all_taps; /* each: k-tiles of a warp */
    int lines, wide, across,
        spare; /* tiles of pixels; blocks of tiles in a row; tiles of a block in a row */
    uint by_columns[2], by_taps[2];        /* quotients by wide and all_taps */
    int y_step[3], y_channel, add_step[3]; /* image, row, column */
    float scale;
    int tap[32]; /* how far each lies from tap 0 */
} leg;
enum { X, W, Y, BIAS, ADD };
#define ZEROS BASES_MOST /* number of a place of 128 zero bytes */
#define LEG_WORDS ((int)sizeof(leg) / 4)

/* What a warp knows of meetings: the level it works on, and up to which one it has waited; turn:
 * which of two rooms for parts is next. */
typedef struct {
    uint level, seen, flag;
    int turn;
} meetings;

/* The number of this item, anew: what follows from it is found again in each leg, rather than kept
 * in registers through all codes. */
INLINE int relay_item(void) {
    int i;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(i));
    return i;
}

INLINE uint relay_flag(uint at) {
    uint v;
    asm volatile("ld.acquire.cta.shared.u32 %0, [%1];" : "=r"(v) : "r"(at) : "memory");
    return v;
}
/* Before the first read of what an earlier level wrote. */
INLINE void relay_wait(meetings *m) {
    if (m->seen >= m->level) return;
    while (relay_flag(m->flag) < m->level) {}
    m->seen = m->level;
    asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");
}

INLINE global const uchar *relay_at(local const leg *l, local const ulong *base, int operand,
                                    long at) {
    return (global const uchar *)base[l->base[operand]] + at;
}

/* 16 bytes: what other legs may have written; what was there before the launch. */
INLINE void relay_load(uint *v, global const void *p) {
    asm volatile("ld.global.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
                 : "l"(p)
                 : "memory");
}
INLINE void relay_load_still(uint *v, global const void *p) {
    asm volatile("ld.global.nc.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
                 : "l"(p));
}

INLINE uint relay_quotient(uint x, uint multiplier, uint shift) {
    return (uint)((ulong)x * multiplier >> shift);
}

typedef struct {
    int image, row, column;
} relay_pixel;
INLINE relay_pixel relay_pixel_of(local const leg *l, uint m) {
    relay_pixel p;
    const uint line = relay_quotient(m, l->multiplier[1], l->shifts[1]);
    p.image = relay_quotient(line, l->multiplier[0], l->shifts[0]);
    p.column = m - line * l->out[1];
    p.row = line - p.image * l->out[0];
    return p;
}

/* How far a pixel is from the first one; steps: of images, rows and columns. */
INLINE int relay_place(relay_pixel p, local const int *steps) {
    return p.image * steps[0] + p.row * steps[1] + p.column * steps[2];
}

/* Work that single items do, 32 numbers in a row for a warp: the first of them.  All lanes of a
 * warp go on together, since they wait together. */
INLINE int relay_first(local const leg *l) {
    const int group = (int)get_group_id(0) - l->shift;
    return (group < 0 ? group + (int)get_num_groups(0) : group) * ITEMS + (relay_item() & ~31);
}

/* What such an item makes: four channels, from c on, of a pixel whose window begins in row h and
 * column v of x.  there: it has some; others go through the last ones again, and keep them. */
typedef struct {
    int there, c, h, v;
    relay_pixel p;
} relay_quad;
INLINE relay_quad relay_quad_of(local const leg *l, int first, int lane) {
    relay_quad q;
    q.there = first + lane < l->tiles;
    const int i = q.there ? first + lane : l->tiles - 1, pixel = i / l->columns;
    q.c = 4 * (i - pixel * l->columns);
    q.p = relay_pixel_of(l, pixel);
    q.h = q.p.row * l->stride[0] + l->origin[0];
    q.v = q.p.column * l->stride[1] + l->origin[1];
    return q;
}
