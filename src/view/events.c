/* Event files of TensorBoard: records of protobuf messages, appended to a file that its server
 * follows.
 *
 *   file     record...; the first holds Event{wall_time, file_version = "brain.Event:2"}
 *   record   length u64, masked CRC-32C of these 8 bytes, payload, masked CRC-32C of the payload;
 *            little endian
 *   payload  Event: 1 wall_time double, 2 step, 3 file_version, 4 graph_def bytes, 5 summary { 1
 *            value... }
 *   value    1 tag, 2 simple_value float, 4 image, 5 histogram, 8 tensor, 9 metadata { 1 plugin { 1
 *            name, 2 content } }
 *
 * Field numbers from the .proto files of tensorboard (Apache-2.0), framing from TensorFlow's
 * TFRecord. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "base/error.h"
#include "base/memory.h"
#include "graph/graph_internal.h"
#include "view/view_internal.h"

enum { FLUSH_AT = 1 << 20, TRIES = 1000 };
enum { EVENT_TIME = 1, EVENT_STEP = 2, EVENT_VERSION = 3, EVENT_GRAPH = 4, EVENT_SUMMARY = 5 };
enum { SUMMARY_VALUE = 1 };
enum {
    VALUE_TAG = 1,
    VALUE_SIMPLE = 2,
    VALUE_IMAGE = 4,
    VALUE_HISTOGRAM = 5,
    VALUE_TENSOR = 8,
    VALUE_METADATA = 9
};
enum { METADATA_PLUGIN = 1, PLUGIN_NAME = 1, PLUGIN_CONTENT = 2 };

struct fac_events {
    int fd;
    char path[PATH_MAX];
    fac_text pending; /* records that are not in the file yet */
};

static double wall_time(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void add_little_endian(fac_text *to, uint64_t x, int bytes) {
    char b[8];
    for (int k = 0; k < bytes; k++) b[k] = (char)(x >> 8 * k & 255);
    fac_text_add_bytes(to, b, (size_t)bytes);
}

void fac_record_add(fac_text *to, const void *payload, size_t bytes) {
    size_t at = to->n;
    add_little_endian(to, bytes, 8);
    if (!to->failed) add_little_endian(to, fac_crc32c_masked(to->s + at, 8), 4);
    fac_text_add_bytes(to, payload, bytes);
    add_little_endian(to, fac_crc32c_masked(payload, bytes), 4);
}

/* ---- the file ---- */

static fac_status io_error(fac_error *err, const char *path) {
    char text[128];
    int code = errno;
    return fac_raise(err, FAC_E_IO, "%s: %s", path, strerror_r(code, text, sizeof text));
}

/* With the folders above it; mkdir fails on those that are there, and opening a file tells whether
 * one is missing. */
static void make_folder(const char *folder) {
    char path[PATH_MAX];
    for (size_t n = 1; n <= strlen(folder) && n < sizeof path; n++)
        if (folder[n] == '/' || !folder[n]) {
            memcpy(path, folder, n);
            path[n] = 0;
            mkdir(path, 0777);
        }
}

/* The names that TensorBoard's own writers give: time, host, process, and a number that makes it
 * new. */
static int open_new(fac_events *e, const char *folder) {
    char host[65] = "localhost";
    gethostname(host, sizeof host - 1);
    for (int k = 0; k < TRIES; k++) {
        int n = snprintf(e->path, sizeof e->path, "%s/events.out.tfevents.%lld.%s.%ld.%d", folder,
                         (long long)time(NULL), host, (long)getpid(), k);
        if (n < 0 || (size_t)n >= sizeof e->path) {
            errno = ENAMETOOLONG;
            return -1;
        }
        const int how = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_APPEND | O_CLOEXEC;
        int fd = open(e->path, how, 0666);
        if (fd >= 0 || errno != EEXIST) return fd;
    }
    return -1;
}

fac_status fac_events_flush(fac_events *e, fac_error *err) {
    if (e->pending.failed)
        return fac_raise(err, FAC_E_NOMEM, "%s: no memory for an event", e->path);
    size_t at = 0;
    while (at < e->pending.n) {
        ssize_t done = write(e->fd, e->pending.s + at, e->pending.n - at);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) break;
        at += (size_t)done;
    }
    fac_status status = at < e->pending.n ? io_error(err, e->path) : FAC_OK;
    if (at)
        memmove(e->pending.s, e->pending.s + at,
                e->pending.n - at); /* nothing is ever written twice */
    e->pending.n -= at;
    return status;
}

/* Takes the message. */
static fac_status add_event(fac_events *e, fac_proto *event, fac_error *err) {
    fac_record_add(&e->pending, event->s, event->n);
    e->pending.failed |= event->failed;
    fac_text_free(event);
    if (e->pending.failed)
        return fac_raise(err, FAC_E_NOMEM, "%s: no memory for an event", e->path);
    return e->pending.n < FLUSH_AT ? FAC_OK : fac_events_flush(e, err);
}

fac_status fac_events_open(const char *folder, fac_events **out, fac_error *err) {
    fac_events *e = fac_alloc(1, sizeof *e);
    if (!e) return fac_raise(err, FAC_E_NOMEM, "%s: no memory for its events", folder);
    make_folder(folder);
    e->fd = open_new(e, folder);
    fac_proto first = { 0 };
    fac_put_double(&first, EVENT_TIME, wall_time());
    fac_put_text(&first, EVENT_VERSION, "brain.Event:2");
    fac_status status = e->fd < 0 ? io_error(err, folder) : FAC_OK;
    if (!status) status = add_event(e, &first, err);
    if (!status) status = fac_events_flush(e, err);
    fac_text_free(&first);
    if (status)
        fac_events_close(e, NULL);
    else
        *out = e;
    return status;
}

fac_status fac_events_close(fac_events *e, fac_error *err) {
    if (!e) return FAC_OK;
    fac_status status = e->fd < 0 ? FAC_OK : fac_events_flush(e, err);
    if (e->fd >= 0 && close(e->fd) && !status) status = io_error(err, e->path);
    fac_text_free(&e->pending);
    fac_release(e);
    return status;
}

const char *fac_events_path(const fac_events *e) { return e->path; }

/* ---- what is recorded ---- */

/* A value with its tag; the rest of its fields follow. */
static fac_proto tagged(const char *tag) {
    fac_proto value = { 0 };
    fac_put_text(&value, VALUE_TAG, tag);
    return value;
}

static fac_status add_value(fac_events *e, int64_t step, fac_proto *value, fac_error *err) {
    fac_proto event = { 0 }, summary = { 0 };
    fac_put_message(&summary, SUMMARY_VALUE, value);
    fac_put_double(&event, EVENT_TIME, wall_time());
    fac_put_int(&event, EVENT_STEP, step);
    fac_put_message(&event, EVENT_SUMMARY, &summary);
    return add_event(e, &event, err);
}

fac_status fac_events_scalar(fac_events *e, const char *tag, int64_t step, double x,
                             fac_error *err) {
    fac_proto value = tagged(tag);
    fac_put_float(&value, VALUE_SIMPLE, (float)x);
    return add_value(e, step, &value, err);
}

fac_status fac_events_histogram(fac_events *e, const char *tag, int64_t step, const fac_tensor *t,
                                fac_error *err) {
    enum { MIN = 1, MAX, NUM, SUM, SUM_SQUARES, LIMITS, COUNTS };
    fac_histogram h;
    double counts[FAC_BUCKETS];
    FAC_TRY(fac_histogram_of(t, &h, err));
    for (int k = 0; k < h.buckets; k++) counts[k] = (double)h.in[k];
    fac_proto value = tagged(tag), histogram = { 0 };
    fac_put_double(&histogram, MIN, h.min);
    fac_put_double(&histogram, MAX, h.max);
    fac_put_double(&histogram, NUM, (double)h.count);
    fac_put_double(&histogram, SUM, h.sum);
    fac_put_double(&histogram, SUM_SQUARES, h.sum_squares);
    fac_put_doubles(&histogram, LIMITS, (size_t)h.buckets, h.limit);
    fac_put_doubles(&histogram, COUNTS, (size_t)h.buckets, counts);
    fac_put_message(&value, VALUE_HISTOGRAM, &histogram);
    return add_value(e, step, &value, err);
}

static bool add_bytes(void *to, const void *data, size_t bytes) {
    fac_text *t = to;
    fac_text_add_bytes(t, data, bytes);
    return !t->failed;
}

fac_status fac_events_image(fac_events *e, const char *tag, int64_t step, const fac_image *image,
                            fac_error *err) {
    enum { HEIGHT = 1, WIDTH, COLOURS, ENCODED, RGB = 3 };
    fac_text png = { 0 };
    fac_status status = fac_image_encode(image, add_bytes, &png, err);
    if (!status) {
        fac_proto value = tagged(tag), inner = { 0 };
        fac_put_int(&inner, HEIGHT, image->height);
        fac_put_int(&inner, WIDTH, image->width);
        fac_put_int(&inner, COLOURS, RGB);
        fac_put_bytes(&inner, ENCODED, png.s, png.n);
        fac_put_message(&value, VALUE_IMAGE, &inner);
        status = add_value(e, step, &value, err);
    }
    fac_text_free(&png);
    return status;
}

static void put_plugin(fac_proto *value, const char *name, fac_proto *content) {
    fac_proto metadata = { 0 }, plugin = { 0 };
    fac_put_text(&plugin, PLUGIN_NAME, name);
    if (content) fac_put_message(&plugin, PLUGIN_CONTENT, content);
    fac_put_message(&metadata, METADATA_PLUGIN, &plugin);
    fac_put_message(value, VALUE_METADATA, &metadata);
}

fac_status fac_events_text(fac_events *e, const char *tag, int64_t step, const char *markdown,
                           fac_error *err) {
    enum { TYPE = 1, SHAPE = 2, STRINGS = 8, DT_STRING = 7, SHAPE_DIM = 2, DIM_SIZE = 1 };
    fac_proto value = tagged(tag), tensor = { 0 }, shape = { 0 }, dim = { 0 };
    fac_put_int(&dim, DIM_SIZE, 1);
    fac_put_message(&shape, SHAPE_DIM, &dim);
    fac_put_int(&tensor, TYPE, DT_STRING);
    fac_put_message(&tensor, SHAPE, &shape);
    fac_put_text(&tensor, STRINGS, markdown);
    fac_put_message(&value, VALUE_TENSOR, &tensor);
    put_plugin(&value, "text", NULL);
    return add_value(e, step, &value, err);
}

fac_status fac_events_graph(fac_events *e, const fac_graph *g, fac_error *err) {
    FAC_TRY(fac_graph_usable(g, "fac_events_graph", err));
    fac_proto event = { 0 }, def = { 0 };
    fac_graph_def(g, &def);
    fac_put_double(&event, EVENT_TIME, wall_time());
    fac_put_message(&event, EVENT_GRAPH, &def);
    return add_event(e, &event, err);
}

/* ---- hyperparameters: HParamsPluginData { 3 session_start_info, 4 session_end_info } ---- */

static fac_status add_session(fac_events *e, const char *tag, int field, fac_proto *info,
                              fac_error *err) {
    fac_proto value = tagged(tag), data = { 0 };
    fac_put_message(&data, field, info);
    put_plugin(&value, "hparams", &data);
    return add_value(e, 0, &value, err);
}

/* SessionStartInfo { 1 map<string, google.protobuf.Value>, 5 start_time }; Value { 2 number, 3
 * string } */
fac_status fac_events_start(fac_events *e, int n, const fac_setting *settings, fac_error *err) {
    enum {
        HPARAMS = 1,
        START_TIME = 5,
        KEY = 1,
        VALUE = 2,
        NUMBER = 2,
        STRING = 3,
        SESSION_START = 3
    };
    fac_proto info = { 0 };
    for (int i = 0; i < n; i++) {
        fac_proto entry = { 0 }, value = { 0 };
        if (settings[i].text)
            fac_put_text(&value, STRING, settings[i].text);
        else
            fac_put_double(&value, NUMBER, settings[i].number);
        fac_put_text(&entry, KEY, settings[i].name);
        fac_put_message(&entry, VALUE, &value);
        fac_put_message(&info, HPARAMS, &entry);
    }
    fac_put_double(&info, START_TIME, wall_time());
    return add_session(e, "_hparams_/session_start_info", SESSION_START, &info, err);
}

/* SessionEndInfo { 1 status, 2 end_time } */
fac_status fac_events_end(fac_events *e, bool success, fac_error *err) {
    enum { STATUS = 1, END_TIME = 2, SUCCESS = 1, FAILURE = 2, SESSION_END = 4 };
    fac_proto info = { 0 };
    fac_put_int(&info, STATUS, success ? SUCCESS : FAILURE);
    fac_put_double(&info, END_TIME, wall_time());
    return add_session(e, "_hparams_/session_end_info", SESSION_END, &info, err);
}
