/* A group of items of a kernel for mma.sync on the CPU: what its inline PTX does, in C, so that its
 * arithmetic of indices can be tried without a GPU.  Items are coroutines; what a warp does
 * together happens when all its lanes have come.  Asynchronous copies happen when an item waits for
 * them, and local memory begins as NaN.  tests/support/warp_emulation.h makes a library of this and
 * of a kernel whose functions with PTX are only declared. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

enum { MOST = 512, STACK = 256 << 10, COPIES = 1 << 9, LANES = 32 };
typedef unsigned int uint;
typedef unsigned short ushort;

typedef struct copy {
    char *to;
    const char *from;
    int size, bytes, turn;
} copy;
typedef struct item {
    ucontext_t at;
    char *stack;
    int done, turn, copies;
    copy copy[COPIES];
} item;
typedef struct warp {
    int come, meeting;
    uint in[LANES][16];
} warp;

static item items[MOST];
static warp warps[MOST / LANES], everyone;
static ucontext_t home;
static int now, count;
static size_t group[3];
static const long *words;
static void *const *buffers;
static char *low; /* local addresses count from here */
static int poisoned;

extern void emu_item(void);
const long *emu_words(void);
size_t emu_buffer(int i);
size_t emu_local_id(uint d);
size_t emu_group_id(uint d);
void emu_barrier(void);
uint emu_local(size_t at, size_t bytes);
void emu_commit(void);
void emu_wait(int n);

const long *emu_words(void) { return words; }
size_t emu_buffer(int i) { return (size_t)buffers[i]; }
size_t emu_local_id(uint d) { return d ? 0 : (size_t)now; }
size_t emu_group_id(uint d) { return group[d]; }

static void meet(warp *w, int all) {
    const int meeting = w->meeting;
    if (++w->come == all) {
        w->come = 0;
        w->meeting++;
        return;
    }
    while (w->meeting == meeting) swapcontext(&items[now].at, &home);
}
void emu_barrier(void) { meet(&everyone, count); }
static warp *mine(void) { return &warps[now / LANES]; }
static void meet_warp(void) { meet(mine(), LANES); }

/* ---- memory ---- */

uint emu_local(size_t at, size_t bytes) {
    if (!poisoned) {
        memset((void *)at, 0xff, bytes);
        low = (char *)at - 4096;
    }
    poisoned = 1;
    return (uint)(at - (size_t)low);
}
static void copy_later(uint to, const char *from, uint size, int n) {
    item *m = &items[now];
    if (m->copies == COPIES || to % size || n < 0 || n > (int)size || (n && (size_t)from % size))
        abort();
    m->copy[m->copies++] = (copy){ low + to, from, (int)size, n, m->turn };
}
void nv_copy4(uint to, const void *from, int n) { copy_later(to, from, 4, n); }
void nv_copy8(uint to, const void *from, int n) { copy_later(to, from, 8, n); }
void nv_copy16(uint to, const void *from, int n) { copy_later(to, from, 16, n); }
void nv_copy16_near(uint to, const void *from, int n) { nv_copy16(to, from, n); }
void emu_commit(void) { items[now].turn++; }
void emu_wait(int n) {
    item *m = &items[now];
    int left = 0;
    for (int i = 0; i < m->copies; i++) {
        const copy c = m->copy[i];
        if (c.turn + n >= m->turn) {
            m->copy[left++] = c;
            continue;
        }
        memset(c.to, 0, (size_t)c.size);
        if (c.bytes) memcpy(c.to, c.from, (size_t)c.bytes);
    }
    m->copies = left;
}
int nv_local_load(uint at) { return *(int *)(low + at); }
void nv_local_load4(uint *v, uint at) { memcpy(v, low + at, 16); }
void nv_local_store4(uint at, const uint *v) { memcpy(low + at, v, 16); }

/* ---- numbers ---- */

static float of_word(uint x) {
    float y;
    memcpy(&y, &x, 4);
    return y;
}
static uint word_of(float x) {
    uint y;
    memcpy(&y, &x, 4);
    return y;
}
static uint to_bf16(float x) {
    const uint u = word_of(x);
    return x != x ? 0x7fff : (u + 0x7fff + (u >> 16 & 1)) >> 16;
}
static uint to_f16(float x) {
    const _Float16 y = (_Float16)x;
    ushort u;
    memcpy(&u, &y, 2);
    return u;
}
float from_f16(ushort x) {
    _Float16 y;
    memcpy(&y, &x, 2);
    return (float)y;
}
uint nv_pack_bf16(float a, float b) { return to_bf16(a) | to_bf16(b) << 16; }
uint nv_pack_f16(float a, float b) { return to_f16(a) | to_f16(b) << 16; }
float nv_exp2(float x) { return exp2f(x); }

/* ---- together ---- */

uint nv_other_word(uint x, int mask) {
    warp *w = mine();
    w->in[now % LANES][0] = x;
    meet_warp();
    const uint y = w->in[now % LANES ^ mask][0];
    meet_warp();
    return y;
}
float nv_other_lane(float x, int mask) { return of_word(nv_other_word(word_of(x), mask)); }

static void matrices(uint *r, uint at, int transposed) {
    warp *w = mine();
    const int lane = now % LANES, g = lane / 4, t = lane % 4;
    if (at % 16) abort();
    w->in[lane][0] = at;
    meet_warp();
    for (int m = 0; m < 4; m++) {
        ushort two[2];
        for (int i = 0; i < 2; i++) {
            const int row = transposed ? 2 * t + i : g;
            const int column = transposed ? g : 2 * t + i;
            memcpy(&two[i], low + w->in[8 * m + row][0] + 2 * column, 2);
        }
        r[m] = two[0] | (uint)two[1] << 16;
    }
    meet_warp();
}
void nv_matrices(uint *r, uint at) { matrices(r, at, 0); }
void nv_matrices_transposed(uint *r, uint at) { matrices(r, at, 1); }

/* Term k of row or column n of an operand: register base + 2 (k / half) or the like, by lanes. */
static float term(const uint *v, int kind, int second) {
    if (kind == 0) return of_word(*v & 0xffffe000u);
    const ushort half = (ushort)(*v >> 16 * second);
    return kind == 1 ? of_word((uint)half << 16) : from_f16(half);
}
static void mma(float *d, const uint *a, const uint *b, int kind) {
    warp *w = mine();
    const int lane = now % LANES, of_lane = kind ? 2 : 1, terms = 8 * of_lane;
    memcpy(w->in[lane], a, 16);
    memcpy(w->in[lane] + 4, b, 8);
    meet_warp();
    for (int i = 0; i < 4; i++) {
        const int g = lane / 4, column = 2 * (lane % 4) + i % 2;
        float sum = d[i];
        for (int k = 0; k < terms; k++) {
            const int later = k / (terms / 2), t = k % (terms / 2) / of_lane, second = k % of_lane;
            sum += term(&w->in[4 * g + t][2 * later + i / 2], kind, second) *
                   term(&w->in[4 * column + t][4 + later], kind, second);
        }
        d[i] = sum;
    }
    meet_warp();
}
void nv_mma_tf32(float *d, const uint *a, const uint *b) { mma(d, a, b, 0); }
void nv_mma_tf32_first(float *d, const uint *a, const uint *b) {
    memset(d, 0, 16);
    mma(d, a, b, 0);
}
void nv_mma_bf16(float *d, const uint *a, const uint *b) { mma(d, a, b, 1); }
void nv_mma_f16(float *d, const uint *a, const uint *b) { mma(d, a, b, 2); }

uint quad_or(uint x, uint *room) {
    (void)room;
    x |= nv_other_word(x, 1);
    return x | nv_other_word(x, 2);
}

/* Words of 256 bits of a row and of a column stand as the eights of two numbers do: word t + 4 i of
 * lane t in register i, or for rows 2 i. */
void nv_mma_bits(int *d, const uint *a, const uint *b) {
    warp *w = mine();
    const int lane = now % LANES;
    memcpy(w->in[lane], a, 16);
    memcpy(w->in[lane] + 4, b, 8);
    meet_warp();
    for (int i = 0; i < 4; i++) {
        const int row = lane / 4, column = 2 * (lane % 4) + i % 2;
        for (int k = 0; k < 8; k++)
            d[i] += __builtin_popcount(w->in[4 * row + k % 4][2 * (k / 4) + i / 2] &
                                       w->in[4 * column + k % 4][4 + k / 4]);
    }
    meet_warp();
}

/* ---- all groups, one after the other ---- */

static void begin(void) {
    emu_item();
    items[now].done = 1;
    swapcontext(&items[now].at, &home);
}

static int run(const size_t *groups, int each, const long *numbers, void *const *memory) {
    const size_t all = groups[0] * groups[1] * groups[2];
    words = numbers;
    buffers = memory;
    count = each;
    for (size_t u = 0; u < all; u++) {
        int left = each, idle = 0;
        group[0] = u % groups[0];
        group[1] = u / groups[0] % groups[1];
        group[2] = u / groups[0] / groups[1];
        poisoned = 0;
        memset(warps, 0, sizeof warps);
        memset(&everyone, 0, sizeof everyone);
        for (int i = 0; i < each; i++) {
            item *m = &items[i];
            if (!m->stack) m->stack = malloc(STACK);
            m->done = m->turn = m->copies = 0;
            getcontext(&m->at);
            m->at.uc_stack = (stack_t){ .ss_sp = m->stack, .ss_size = STACK };
            makecontext(&m->at, begin, 0);
        }
        while (left && idle < 1 << 20) {
            for (now = 0; now < each; now++) {
                if (items[now].done) continue;
                swapcontext(&home, &items[now].at);
                left -= items[now].done;
            }
            idle++;
        }
        if (left) return 1;
    }
    return 0;
}

/* 0: all ran to their end; 1: no item can go on. */
int machine_run(const size_t *groups, int each, const long *numbers, void *const *memory);
int machine_run(const size_t *groups, int each, const long *numbers, void *const *memory) {
    const int result = run(groups, each, numbers, memory);
    for (int i = 0; i < each; i++) {
        free(items[i].stack);
        items[i].stack = NULL;
    }
    return result;
}
