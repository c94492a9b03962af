/* facula listen: a model hears a microphone, or a stream from a pipe, and says what it hears. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "facula/sound.h"
#include "json.h"
#include "labels.h"

static struct {
    device_options device;
    const char *labels;
    double hop, threshold;
    bool all, json;
} o = { .hop = 0.25, .threshold = 0.5 };

static const option options[] = {
    { "--hop", OPTION_REAL, &o.hop, "X", "seconds between looks; default 0.25", "(0, 60]" },
    { "--threshold", OPTION_REAL, &o.threshold, "P",
      "how likely a class must be to be told; default 0.5", "[0, 1]" },
    { "--all", OPTION_FLAG, &o.all, NULL,
      "a line for each look, not only where another class begins" },
    { "--labels", OPTION_TEXT, &o.labels, "FILE", "names of the classes, one a line" },
    DEVICE_OPTIONS(o.device),
    { "--json", OPTION_FLAG, &o.json, NULL, "for machines: a line for each event" },
    { 0 }
};

typedef struct job {
    model m;
    labels names;
    fac_device *device;
    fac_program *program;
    fac_capture *capture;
    fac_ring *ring;
    fac_tensor *x;
    float *window;
    int64_t length, hop;
    int rate;
    int64_t last; /* the class that was told; -1: none */
    bool fitted;
    /* of the thread that captures */
    _Atomic bool over;
    fac_error lost;
} job;

static volatile sig_atomic_t stopped;
static void stop(int number) {
    (void)number;
    stopped = 1;
}

static int understand(job *j) {
    const fac_graph *g = j->m.graph;
    const char *note = fac_graph_note(g, FAC_NOTE_RATE);
    if (fac_graph_inputs(g) != 1)
        return fail_text("the model has %d inputs, one that hears has one", fac_graph_inputs(g));
    const fac_type t = fac_value_type(fac_graph_input(g, 0));
    const long rate = note ? strtol(note, NULL, 10) : 0;
    if (rate < 1 || rate > 10000000)
        return fail_text(
            "the model does not say at which rate it hears: `facula edit --meta " FAC_NOTE_RATE
            "=16000` does");
    if (t.dtype != FAC_F32 || t.dims.n != 2 || t.dims.d[1] < 1)
        return fail_text(
            "the model takes no waveform of a known length: its input must be f32 [N, samples]");
    j->rate = (int)rate;
    j->length = t.dims.d[1];
    j->hop = (int64_t)(o.hop * (double)rate + 0.5);
    if (j->hop < 1) j->hop = 1;
    return EXIT_OK;
}

static int tell(job *j, int64_t first, const fac_class *best, double ms) {
    char name[64];
    const double at = (double)(first + j->length) / j->rate;
    const bool heard = best->probability >= o.threshold;
    const int64_t is = heard ? best->index : -1;
    if (!o.all && is == j->last) return EXIT_OK;
    j->last = is;
    if (!heard && !o.all) return EXIT_OK;
    if (!o.json) {
        printf("%9.2f s  %6.2f %%  %s  (%.1f ms)\n", at, 100 * best->probability,
               label_of(best, name, sizeof name), ms);
        fflush(stdout);
        return EXIT_OK;
    }
    cJSON *root = cJSON_CreateObject();
    json_number(root, "time", at, 8);
    cJSON_AddNumberToObject(root, "index", (double)best->index);
    cJSON_AddStringToObject(root, "label", label_of(best, name, sizeof name));
    json_number(root, "p", best->probability, 7);
    json_number(root, "ms", ms, 5);
    return json_line(root);
}

/* One window of the stream, which is complete since `since`. */
static int look(job *j, int64_t first, double since) {
    fac_error err = { 0 };
    fac_class best;
    int found = 0;
    const int nout = fac_graph_outputs(j->m.graph);
    fac_tensor **out = tensors_new(nout);
    if (!out) return fail_text("out of memory");
    fac_status s = fac_tensor_write(j->x, j->window, (size_t)j->length * sizeof *j->window, &err);
    if (!s) s = fac_program_run(j->program, &j->x, out, &err);
    if (!s) s = fac_device_sync(j->device, &err);
    int code = s ? fail(&err) : EXIT_OK;
    if (!code && !j->fitted) {
        const fac_type t = fac_tensor_type(out[0]);
        code = labels_fit(&j->names, fac_dims_count(&t.dims));
        j->fitted = true;
    }
    if (!code && fac_top(out[0], 0, j->names.names, 1, &best, &found, &err)) code = fail(&err);
    if (!code && found) code = tell(j, first, &best, 1e3 * (now() - since));
    tensors_free(out, nout);
    return code;
}

/* All windows that are there. */
static int looks(job *j, double since) {
    int64_t first;
    int code = EXIT_OK;
    while (!code && fac_ring_get(j->ring, j->window, &first)) code = look(j, first, since);
    return code;
}

/* A pipe waits for us, so nothing is lost: the windows are those of a file. */
static int from_pipe(job *j) {
    enum { PART = 1024 };
    fac_error err = { 0 };
    float part[PART];
    int64_t n = 1;
    int code = EXIT_OK;
    while (!code && n) {
        if (fac_capture_read(j->capture, part, j->hop < PART ? j->hop : PART, &n, &err))
            return fail(&err);
        const double since = now();
        fac_ring_put(j->ring, part, n);
        code = looks(j, since);
    }
    return code;
}

static void *capture(void *job_) {
    enum { PART = 512 };
    job *j = job_;
    float part[PART];
    int64_t n;
    while (!atomic_load(&j->over) && !fac_capture_read(j->capture, part, PART, &n, &j->lost))
        fac_ring_put(j->ring, part, n);
    atomic_store(&j->over, true);
    return NULL;
}

/* A microphone does not: a thread takes what comes. */
static int from_microphone(job *j) {
    pthread_t thread;
    int code = EXIT_OK;
    if (pthread_create(&thread, NULL, capture, j)) return fail_text("no thread to hear with");
    while (!code && !stopped && !atomic_load(&j->over)) {
        const struct timespec nap = { 0, 2000000 };
        code = looks(j, now());
        nanosleep(&nap, NULL);
    }
    atomic_store(&j->over, true);
    pthread_join(thread, NULL);
    if (fac_ring_dropped(j->ring))
        fprintf(stderr, "facula: %lld windows came too fast and were dropped\n",
                (long long)fac_ring_dropped(j->ring));
    return !code && j->lost.status ? fail(&j->lost) : code;
}

static int work(job *j, list args) {
    fac_error err = { 0 };
    const char *source = args.n > 1 ? args.at[1] : "default";
    int code = device_open(&o.device, &j->device);
    if (!code) code = model_load(args.at[0], NULL, NULL, 0, &j->m);
    if (!code) code = understand(j);
    if (!code) code = labels_find(&j->m, o.labels, &j->names);
    if (code) return code;
    j->window = calloc((size_t)j->length, sizeof *j->window);
    if (!j->window) return fail_text("out of memory");
    fac_status s = fac_program_new(j->m.graph, j->device, NULL, &j->program, &err);
    if (!s) s = fac_tensor_new(NULL, FAC_F32, fac_shape(1, j->length), &j->x, &err);
    if (!s) s = fac_ring_new(j->length, j->hop, &j->ring, &err);
    if (!s) s = fac_capture_open(source, j->rate, &j->capture, &err);
    if (s) return fail(&err);
    if (!fac_capture_ends(j->capture)) signal(SIGINT, stop);
    return fac_capture_ends(j->capture) ? from_pipe(j) : from_microphone(j);
}

static int run(list args) {
    static job j = { .last = -1 };
    if (!args.n || args.n > 2)
        return usage_error(verb_find("listen"), "which model, and what does it hear?");
    const int code = work(&j, args);
    fac_capture_free(j.capture);
    fac_ring_free(j.ring);
    fac_tensor_free(j.x);
    free(j.window);
    fac_program_free(j.program);
    labels_free(&j.names);
    model_free(&j.m);
    fac_device_free(j.device);
    return code;
}

const verb verb_listen = { .name = "listen",
                           .summary = "says what a model hears in a microphone or a stream",
                           .usage = "facula listen MODEL [SOURCE] [options]",
                           .options = options,
                           .run = run,
                           .more = "MODEL takes waveforms and says at which rate, as those of "
                                   "`facula train sound-folder` do.  SOURCE is an ALSA\n"
                                   "device (default, hw:0), or - for standard input: WAV, or raw "
                                   "16 bits of one channel at the model's rate.\n"
                                   "A line is printed where another class begins: when, how "
                                   "likely, which, and how long the answer took." };
