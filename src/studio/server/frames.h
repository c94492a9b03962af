/* Frames from a session to a page: one slot for each kind, which holds only the newest frame.  A
 * slow reader misses frames; nothing is queued.
 *
 * On the wire a frame is the number of its bytes (u32, little endian), its kind (u8) and the
 * bytes. */
#ifndef FACULA_STUDIO_FRAMES_H
#define FACULA_STUDIO_FRAMES_H
#include <stdint.h>
#include "base/text.h"

typedef enum frame_kind {
    FRAME_SETUP = 1, /* JSON: the settings that the other frames refer to */
    FRAME_STATE,     /* JSON: current numbers */
    FRAME_BOUNDARY,  /* u32 generation, u16 width, u16 height, a byte per pixel, a byte per point */
    FRAME_NEURONS,  /* u32 generation, u8 layers; for each u16 count, and for each neuron f32 scale,
                       50 x 50 bytes */
    FRAME_WEIGHTS,  /* u32 generation, f32 of all parameters one after the other */
    FRAME_PANELS,   /* JSON: histograms and norms */
    FRAME_PICTURES, /* u32 generation, u16 count; for each u8 group, u8 label, u16 width, u16
                       height, bytes */
    FRAME_WRONG,    /* likewise, or JSON: rows of a table */
    FRAME_COLUMNS, /* u32 generation, u32 index of the first, u16 count, u16 rows; for each column a
                      byte per row, the lowest first */
    FRAME_KINDS
} frame_kind;

typedef struct frames frames;

frames *fac_frames_new(void);    /* NULL: no memory */
void fac_frames_free(frames *f); /* no reader may be left; NULL is allowed */
/* Takes the bytes of t, which is empty afterwards; a text that ran out of memory is dropped. */
void fac_frames_put(frames *f, frame_kind kind, fac_text *t);
bool fac_frames_taken(frames *f); /* there is a reader, and it has read everything */
bool fac_frames_read(frames *f);  /* a client reads, or did within the last seconds */
void fac_frames_end(frames *f);   /* readers get no more frames */

/* A reader takes a ticket; a new reader ends the earlier ones. */
int fac_frames_ticket(frames *f);
/* Waits for new frames, at most for this time.  *out: all new frames, or nothing.  False: this
 * reader must end. */
bool fac_frames_take(frames *f, int ticket, int64_t wait_ns, fac_text *out);
#endif
