/* What a session shows, on its way to a page: one slot a kind, which holds the newest frame alone.
 * A slow reader misses frames; nothing queues.
 *
 * On the wire a frame is its length (u32, little endian, of what comes after the kind), its kind
 * (u8) and its bytes. */
#ifndef FACULA_STUDIO_FRAMES_H
#define FACULA_STUDIO_FRAMES_H
#include <stdint.h>
#include "base/text.h"

typedef enum frame_kind {
    FRAME_SETUP = 1, /* JSON: what the rest is about */
    FRAME_STATE,     /* JSON: numbers of now */
    FRAME_BOUNDARY,  /* u32 generation, u16 width, u16 height, a byte a pixel, a byte a point */
    FRAME_NEURONS, /* u32 generation, u8 layers; of each u16 count, and of each neuron f32 scale, 50
                      x 50 bytes */
    FRAME_WEIGHTS, /* u32 generation, f32 of all parameters one after the other */
    FRAME_PANELS,  /* JSON: histograms and norms */
    FRAME_PICTURES, /* u32 generation, u16 count; of each u8 group, u8 label, u16 width, u16 height,
                       bytes */
    FRAME_WRONG,    /* likewise, or JSON: rows of a table */
    FRAME_COLUMNS,  /* u32 generation, u32 the first's number, u16 count, u16 rows; of each column a
                       byte a row, the lowest first */
    FRAME_KINDS
} frame_kind;

typedef struct frames frames;

frames *fac_frames_new(void);    /* NULL: no memory */
void fac_frames_free(frames *f); /* no reader may be left; NULL is fine */
/* Takes the bytes of t, which is empty then; one that ran out of memory is dropped. */
void fac_frames_put(frames *f, frame_kind kind, fac_text *t);
bool fac_frames_taken(frames *f); /* a reader is there and has all that was put */
bool fac_frames_read(frames *f);  /* a client reads, or did within the last seconds */
void fac_frames_end(frames *f);   /* readers get no more */

/* A reader takes a ticket; a later one ends those before it. */
int fac_frames_ticket(frames *f);
/* Waits until there is something, for so long at most.  false: the reader's time is over.  *out:
 * all new frames, or nothing. */
bool fac_frames_take(frames *f, int ticket, int64_t wait_ns, fac_text *out);
#endif
