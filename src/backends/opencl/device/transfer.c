/* Bytes to the device and back.
 *
 * Drivers copy pageable memory through a pinned buffer of their own, and wait for it.  Here the
 * pinned buffer is ours: eight pieces of 1 MiB.  A write copies into a piece, enqueues the transfer
 * and returns; small writes share a piece.  A large read has one piece copied out by the host while
 * the next ones are still on their way. */
#include <string.h>
#include "backends/opencl/device/opencl.h"
#include "base/error.h"

enum { PIECE = 1 << 20, SMALL = 64 << 10 };

/* All the pieces, mapped for good. */
static fac_status staging_of(fac_opencl *o, fac_error *err) {
    fac_cl_staging *s = &o->staging;
    cl_int code;
    if (s->buffer) return FAC_OK;
    cl_mem buffer = o->cl.CreateBuffer(o->context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR,
                                       (size_t)FAC_CL_PIECES * PIECE, NULL, &code);
    if (code) return fac_cl_raise(o, code, "pinned memory", err);
    s->at = o->cl.EnqueueMapBuffer(o->queue, buffer, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0,
                                   (size_t)FAC_CL_PIECES * PIECE, 0, NULL, NULL, &code);
    if (code) {
        o->cl.ReleaseMemObject(buffer);
        return fac_cl_raise(o, code, "pinned memory", err);
    }
    s->buffer = buffer;
    return FAC_OK;
}

void fac_cl_staging_fini(fac_opencl *o) {
    fac_cl_staging *s = &o->staging;
    for (int i = 0; i < FAC_CL_PIECES; i++)
        if (s->busy[i]) o->cl.ReleaseEvent(s->busy[i]);
    if (!s->buffer) return;
    o->cl.EnqueueUnmapMemObject(o->queue, s->buffer, s->at, 0, NULL, NULL);
    o->cl.Finish(o->queue);
    o->cl.ReleaseMemObject(s->buffer);
}

static fac_status idle(fac_opencl *o, int piece, fac_error *err) {
    cl_event *e = &o->staging.busy[piece];
    cl_int code = *e ? o->cl.WaitForEvents(1, e) : 0;
    if (*e) o->cl.ReleaseEvent(*e);
    *e = NULL;
    return code ? fac_cl_blame(o, code, "writing to the device", err) : FAC_OK;
}

static void busy(fac_opencl *o, int piece, cl_event event) {
    cl_event *e = &o->staging.busy[piece];
    if (*e) o->cl.ReleaseEvent(*e);
    *e = event;
}

/* Room for n bytes, at most a piece: in the piece at hand, or in the next one when that is done
 * with its last transfer. */
static fac_status room(fac_opencl *o, size_t n, char **out, fac_error *err) {
    fac_cl_staging *s = &o->staging;
    FAC_TRY(staging_of(o, err));
    if (s->used + n > PIECE) {
        s->piece = (s->piece + 1) % FAC_CL_PIECES;
        s->used = 0;
        FAC_TRY(idle(o, s->piece, err));
    }
    *out = s->at + (size_t)s->piece * PIECE + s->used;
    s->used += (n + 63) & ~(size_t)63;
    return FAC_OK;
}

static fac_status write_pieces(fac_opencl *o, fac_span to, const char *from, size_t bytes,
                               fac_error *err) {
    for (size_t at = 0; at < bytes; at += PIECE) {
        const size_t n = bytes - at < PIECE ? bytes - at : PIECE;
        cl_event event;
        char *piece;
        FAC_TRY(room(o, n, &piece, err));
        memcpy(piece, from + at, n);
        cl_int code = o->cl.EnqueueWriteBuffer(o->queue, fac_cl_buffer(to), CL_FALSE,
                                               fac_cl_at(to) + at, n, piece, 0, NULL, &event);
        if (code) return fac_cl_blame(o, code, "writing to the device", err);
        busy(o, o->staging.piece, event);
        if (bytes > PIECE) o->cl.Flush(o->queue); /* it moves while the host fills the next piece */
    }
    return FAC_OK;
}

fac_status fac_cl_write(fac_opencl *o, fac_span to, const void *from, size_t bytes,
                        fac_error *err) {
    pthread_mutex_lock(&o->staging.lock);
    fac_status status = write_pieces(o, to, from, bytes, err);
    pthread_mutex_unlock(&o->staging.lock);
    return status;
}

/* All pieces are this read's: writes that still lie in them go first. */
static fac_status read_pieces(fac_opencl *o, fac_span from, char *to, size_t bytes,
                              fac_error *err) {
    const size_t pieces = (bytes + PIECE - 1) / PIECE;
    FAC_TRY(staging_of(o, err));
    for (int i = 0; i < FAC_CL_PIECES; i++) FAC_TRY(idle(o, i, err));
    o->staging.used = PIECE;
    for (size_t i = 0; i < pieces + FAC_CL_PIECES - 1; i++) {
        if (i < pieces) {
            const size_t n = bytes - i * PIECE < PIECE ? bytes - i * PIECE : PIECE;
            const int slot = (int)(i % FAC_CL_PIECES);
            cl_int code = o->cl.EnqueueReadBuffer(
                o->queue, fac_cl_buffer(from), CL_FALSE, fac_cl_at(from) + i * PIECE, n,
                o->staging.at + (size_t)slot * PIECE, 0, NULL, &o->staging.busy[slot]);
            if (code) return fac_cl_blame(o, code, "reading from the device", err);
            o->cl.Flush(o->queue);
        }
        if (i < FAC_CL_PIECES - 1) continue;
        const size_t done = i - (FAC_CL_PIECES - 1),
                     n = bytes - done * PIECE < PIECE ? bytes - done * PIECE : PIECE;
        FAC_TRY(idle(o, (int)(done % FAC_CL_PIECES), err));
        memcpy(to + done * PIECE, o->staging.at + done % FAC_CL_PIECES * PIECE, n);
    }
    return FAC_OK;
}

static fac_status read_once(fac_opencl *o, fac_span from, void *to, size_t bytes, fac_error *err) {
    cl_int code = o->cl.EnqueueReadBuffer(o->queue, fac_cl_buffer(from), CL_TRUE, fac_cl_at(from),
                                          bytes, to, 0, NULL, NULL);
    return code ? fac_cl_blame(o, code, "reading from the device", err) : FAC_OK;
}

/* On a CPU, and for little, the driver's own way is as good. */
fac_status fac_cl_read(fac_opencl *o, fac_span from, void *to, size_t bytes, fac_error *err) {
    const size_t mark = fac_cl_pending_mark(o);
    if (bytes <= SMALL || !o->limits.gpu) {
        FAC_TRY(read_once(o, from, to, bytes, err));
    } else {
        pthread_mutex_lock(&o->staging.lock);
        fac_status status = read_pieces(o, from, to, bytes, err);
        pthread_mutex_unlock(&o->staging.lock);
        FAC_TRY(status);
    }
    fac_cl_pending_clear(o, mark);
    return FAC_OK;
}
