/* What the files of convolutions of bits share: bits.c (what is decided, and the run),
 * bits_weights.c and bits_pixels.c. */
#ifndef FACULA_CPU_BITS_INTERNAL_H
#define FACULA_CPU_BITS_INTERNAL_H
#include "backends/cpu/bits/bits.h"
#include "backends/cpu/bits/bits_tables.h"
#include "backends/cpu/device/cpu.h"

enum { FAC_BIT_WORD = 32, FAC_BIT_KINDS = 32, FAC_BIT_LONGEST = 1024, FAC_BIT_STRIPS = 8 };
/* By tables: rows of results at once, times planes; rows of tables that these need. */
enum { FAC_BIT_BESIDE = 8, FAC_BIT_AREA = 32, FAC_BIT_RING = 64 };

/* The taps [first, end) of an output that lie inside of the image. */
typedef struct fac_bit_taps {
    int64_t first, end;
} fac_bit_taps;

/* Neighbouring outputs mostly have the same taps: the kind of each, and the taps of a kind. */
typedef struct fac_bit_kinds {
    int64_t n;
    int of[FAC_BIT_LONGEST];
    fac_bit_taps taps[FAC_BIT_KINDS];
} fac_bit_kinds;
/* false: more outputs or kinds than there is room for. */
bool fac_bit_row_kinds(const fac_bit_conv *p, fac_bit_kinds *to);
bool fac_bit_column_kinds(const fac_bit_conv *p, fac_bit_kinds *to);

static inline int64_t fac_bit_least(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t fac_bit_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* Words of a pixel, and of a plane of one image. */
static inline int64_t fac_bit_pixel(const fac_bit_conv *p) { return p->groups * p->words; }
static inline int64_t fac_bit_plane(const fac_bit_conv *p) {
    return p->height * p->width * fac_bit_pixel(p);
}
/* Bytes of the tables of a pixel, and of a row of an image, of one set. */
static inline int64_t fac_bit_pixel_bytes(const fac_bit_conv *p) {
    return p->groups * p->lookups * p->table->table;
}
static inline int64_t fac_bit_row_bytes(const fac_bit_conv *p) {
    return p->table_width * fac_bit_pixel_bytes(p);
}
/* Lanes of all parts. */
static inline int64_t fac_bit_outputs(const fac_bit_conv *p) {
    return p->parts * p->chunks * p->kernels->lanes;
}
/* Of output channel k in tables of fac_bit_outputs. */
int64_t fac_bit_column(const fac_bit_conv *p, int64_t k);
size_t fac_bit_weight_words(const fac_bit_conv *p);

/* What a run knows besides. */
typedef struct fac_bit_job {
    const fac_bit_conv *p;
    const fac_bit_data *d;
    fac_bit_levels x, y;  /* how numbers become codes               */
    float *f, *b;         /* [plane of w][outputs], [outputs]       */
    int32_t *limits;      /* [1 + thresholds][outputs]              */
    int32_t *counts;      /* bits of each pixel, [plane][group]     */
    const uint32_t *bits; /* of pixels: in scratch, or those given  */
    uint32_t *own;        /* scratch                                */
    const int32_t *inside;
    fac_bit_kinds rows, columns; /* of signs */
    fac_bit_finish end;          /* what all vectors have in common */
} fac_bit_job;

/* A strip of outputs: its image, row and first column. */
typedef struct fac_bit_strip {
    int64_t image, row, column;
} fac_bit_strip;
fac_bit_strip fac_bit_strip_of(const fac_bit_conv *p, int64_t at);
/* The bits that the windows of its pixels have, [plane][FAC_BIT_RUN]. */
void fac_bit_window_counts(const fac_bit_job *j, const fac_bit_strip *s, int64_t group,
                           int32_t *to);
/* From the popcounts of a strip and a part to results; t is scratch that began as j->end. */
void fac_bit_finish_part(const fac_bit_job *j, const fac_bit_strip *s, const int32_t *sums,
                         int64_t part, const int32_t *acc, fac_bit_finish *t);

/* bits_words.c: whether a part is a word of codes that whole numbers tell, and these. */
bool fac_bit_by_words(const fac_bit_job *j);
void fac_bit_finish_words(const fac_bit_job *j, const fac_bit_strip *s, const int32_t *sums,
                          int64_t part, const int32_t *acc);

/* bits_tables.c, of what is by tables. */
/* The strips of a row, and then all of it. */
void fac_bit_tables_strips(fac_bit_conv *p);
bool fac_bit_tables_settle(fac_bit_conv *p);
double fac_bit_tables_seconds(const fac_bit_conv *p, double moved);
int64_t fac_bit_plane_indices(const fac_bit_conv *p); /* bytes of weights of a part and plane */
size_t fac_bit_tables_words(const fac_bit_conv *p);   /* of weights                          */
size_t fac_bit_tables_parts(const fac_bit_conv *p);   /* bytes of parts of tables            */
void fac_bit_tables_channel(const fac_bit_conv *p, const uint8_t *row, int64_t k, int m, void *to);
void fac_bit_tables_fill(const fac_bit_conv *p, uint8_t *to);
void fac_bit_tables_run(const fac_bit_job *j, uint8_t *tables, const uint8_t *parts);

/* bits_pixels.c: how numbers become codes of a basis; NULL: signs. */
void fac_bit_levels_of(const float *basis, int planes, bool relu, fac_bit_levels *to);
/* The planes of x with zeros around them, and how many bits each pixel has. */
void fac_bit_pixels(fac_bit_job *j);
#endif
