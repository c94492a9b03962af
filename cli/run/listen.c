/* facula listen: a model hears a microphone, or a stream from a pipe, and says what it hears. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "facula/data/sound.h"
#include "json.h"
#include "hear.h"

static struct {
    device_options device;
    const char *labels;
    double hop, threshold;
    bool all, json;
} o = { .threshold = 0.5 };

/* A single score has to fall so far below the threshold before it is over. */
static const double slack = 0.15;

static const option options[] = {
    { "--hop", OPTION_REAL, &o.hop, "X",
      "seconds from window to window; default: as the model's metadata say, else 0.25", "(0, 60]" },
    { "--threshold", OPTION_REAL, &o.threshold, "P",
      "least probability, 0 to 1, of a class that is reported; default 0.5", "[0, 1]" },
    { "--all", OPTION_FLAG, &o.all, NULL,
      "print a line for each window, not only where another class begins" },
    { "--labels", OPTION_TEXT, &o.labels, "FILE", "names of the classes, one per line" },
    DEVICE_OPTIONS(o.device),
    { "--json", OPTION_FLAG, &o.json, NULL,
      "print JSON, a line for each event, as docs/JSON.md describes" },
    { 0 }
};

typedef struct job {
    model m;
    labels names;
    fac_device *device;
    fac_program *program;
    fac_capture *capture;
    fac_ring *ring;
    hearer h;
    float *window;
    int64_t length, hop, before; /* before: silence that the stream begins with */
    int64_t last;                /* the class that was told; -1: none */
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
    const bool given = option_given(&o.hop);
    const int code = hearer_open(&j->h, &j->m, j->device, j->program);
    if (code) return code;
    if (j->h.window < 1)
        return fail_text("the model does not state how much sound it takes at once: `facula edit "
                         "--meta " FAC_NOTE_WINDOW "=SAMPLES` does");
    if (given && hearer_carries(&j->h))
        return fail_text(
            "--hop is for models without states: this one takes %lld samples at a time",
            (long long)j->h.hop);
    const double seconds = given ? o.hop : 0.25;
    j->length = j->h.window;
    j->hop = given || !j->h.hop ? (int64_t)(seconds * j->h.rate + 0.5) : j->h.hop;
    if (j->hop < 1) j->hop = 1;
    j->before = hearer_before(&j->h);
    return EXIT_OK;
}

/* Which class is heard: of a single score, it or none, and it lasts until it is well below. */
static int64_t heard(const job *j, const fac_class *best) {
    const bool lasts = j->h.classes == 1 && j->last == 0;
    const double least = lasts ? o.threshold - slack : o.threshold;
    return best->probability >= least ? best->index : -1;
}

static int tell(job *j, int64_t first, const fac_class *best, double ms) {
    char name[64], none[80];
    const double at = (double)(first - j->before + j->length) / j->h.rate;
    const bool single = j->h.classes == 1;
    const int64_t is = heard(j, best), was = j->last;
    const char *label = heard_as(&j->h, best, name, sizeof name);
    j->last = is;
    if (!o.all && (is == was || (is < 0 && !single))) return EXIT_OK;
    if (single && is < 0) {
        snprintf(none, sizeof none, "no %s", label);
        label = none;
    }
    if (!o.json) {
        printf("%9.2f s  %6.2f %%  %s  (%.1f ms)\n", at, 100 * best->probability, label, ms);
        fflush(stdout);
        return EXIT_OK;
    }
    cJSON *root = cJSON_CreateObject();
    json_number(root, "time", at, 8);
    cJSON_AddNumberToObject(root, "index", (double)(single ? is : best->index));
    cJSON_AddStringToObject(root, "label", label);
    json_number(root, "p", best->probability, 7);
    json_number(root, "ms", ms, 5);
    return json_line(root);
}

/* One window of the stream, which is complete since `since`. */
static int look(job *j, int64_t first, double since) {
    fac_error err = { 0 };
    fac_class best;
    if (hearer_hear(&j->h, j->window, j->length, &err)) return fail(&err);
    const int code = j->fitted ? EXIT_OK : labels_fit(&j->names, j->h.classes);
    j->fitted = true;
    if (code) return code;
    best_of(j->h.p, j->h.classes, &j->names, 1, &best);
    return tell(j, first, &best, 1e3 * (now() - since));
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
    if (pthread_create(&thread, NULL, capture, j))
        return fail_text("cannot start a thread that listens");
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

/* What comes before the stream, and the stream itself. */
static int open_stream(job *j, const char *source) {
    fac_error err = { 0 };
    j->window = calloc((size_t)j->length, sizeof *j->window);
    if (!j->window) return fail_text("out of memory");
    fac_status s = fac_ring_new(j->length, j->hop, &j->ring, &err);
    if (!s && j->before) fac_ring_put(j->ring, j->window, j->before);
    if (!s) s = fac_capture_open(source, j->h.rate, &j->capture, &err);
    return s ? fail(&err) : EXIT_OK;
}

static int work(job *j, list args) {
    fac_error err = { 0 };
    const char *source = args.n > 1 ? args.at[1] : "default";
    int code = device_open(&o.device, &j->device);
    if (!code) code = model_load(args.at[0], NULL, NULL, 0, &j->m);
    if (!code && fac_program_new(j->m.graph, j->device, NULL, &j->program, &err)) code = fail(&err);
    if (!code) code = understand(j);
    if (!code) code = labels_find(&j->m, o.labels, &j->names);
    if (!code) code = open_stream(j, source);
    if (code) return code;
    if (!fac_capture_ends(j->capture)) signal(SIGINT, stop);
    return fac_capture_ends(j->capture) ? from_pipe(j) : from_microphone(j);
}

static int run(list args) {
    static job j = { .last = -1 };
    const int wrong =
        arguments_fit(verb_find("listen"), args, 1, 2, "which model, and what does it hear?");
    if (wrong) return wrong;
    const int code = work(&j, args);
    fac_capture_free(j.capture);
    fac_ring_free(j.ring);
    hearer_free(&j.h);
    free(j.window);
    fac_program_free(j.program);
    labels_free(&j.names);
    model_free(&j.m);
    fac_device_free(j.device);
    return code;
}

const verb verb_listen = {
    .name = "listen",
    .summary = "report what a model hears in a microphone or a stream",
    .usage = "facula listen MODEL [SOURCE] [options]",
    .options = options,
    .examples = "listen runs/birds/model.onnx\nlisten model.onnx - --threshold 0.8 < street.wav",
    .run = run,
    .more = "MODEL takes waveforms and states their rate, as those of `facula train sound-folder` "
            "do.  SOURCE is\nan ALSA device such as hw:0 (default: `default`), or - for standard "
            "input: WAV, or raw "
            "16-bit samples of one channel\nat the model's rate.\n\nA line is printed where "
            "another class begins: when, how likely, which, and how long the answer\ntook.  Of a "
            "model with one score, such as silero-vad's for speech, beginnings and ends are "
            "printed.\nA model with states carries them from one window to the next."
};
