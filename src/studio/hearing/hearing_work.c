/* The page of sounds: processing, column by column and window by window. */
#include <math.h>
#include <string.h>
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "facula/data/sound.h"
#include "studio/hearing/hearing.h"

#define SLICE_NS INT64_C(8000000)
#define TICK_NS INT64_C(10000000)
static const double look_seconds = 0.25; /* between two windows of the model */

static int64_t end_of(const hearing *p) { return p->first + p->n; }

/* ---- the picture ---- */

/* Steps of half a decibel; 255 is full scale: a sine of amplitude 1 has power (length / 4)^2. */
static uint8_t step_of(double power, int64_t length) {
    const double full = (double)length * (double)length / 16;
    const double step = 255 + 20 * log10(power / full);
    if (!(step > 0)) return 0;
    return step < 255 ? (uint8_t)step : 255;
}

/* power: [from, HEARING_AT_ONCE].  Neighbouring rows are joined; their largest counts. */
static void keep_column(hearing *p, const float *power, int64_t from, int column) {
    uint8_t *to = p->kept[p->columns % HEARING_COLUMNS];
    for (int64_t b = 0; b < p->bins; b++) {
        const int64_t begin = b * from / p->bins, end = (b + 1) * from / p->bins;
        double most = 0;
        for (int64_t k = begin; k < end; k++) {
            const double x = (double)power[k * HEARING_AT_ONCE + column];
            if (x > most) most = x;
        }
        to[b] = step_of(most, p->setup.length);
    }
    p->columns++;
}

/* A column that cannot be computed now is computed later: there are no gaps between columns. */
static bool make_columns(hearing *p) {
    const int64_t samples = p->setup.length + (HEARING_AT_ONCE - 1) * p->hop;
    fac_tensor *power = NULL;
    if (p->next + samples > p->at) return false;
    p->unseen = (fac_error){ 0 };
    fac_status status = fac_tensor_write(p->block, p->x + (p->next - p->first),
                                         (size_t)samples * sizeof *p->x, &p->unseen);
    if (!status) status = fac_program_run(p->spectrum, &p->block, &power, &p->unseen);
    p->dirty = true;
    if (status) return false;
    const float *x = fac_tensor_data(power);
    const int64_t from = fac_tensor_type(power).dims.d[2];
    for (int k = 0; k < HEARING_AT_ONCE && x; k++) keep_column(p, x, from, k);
    fac_tensor_free(power);
    p->next += HEARING_AT_ONCE * p->hop;
    return true;
}

/* ---- the model ---- */

/* The window that ends at p->at, at the model's rate; the sound is preceded by silence. */
static fac_status window(const hearing *p, int64_t n, fac_tensor **out, fac_error *err) {
    float *x = fac_alloc((size_t)n, sizeof *x);
    if (!x) return fac_raise_memory(err, "a window");
    const int64_t from = p->at - n < p->first ? p->first : p->at - n, have = p->at - from;
    memcpy(x + n - have, p->x + (from - p->first), (size_t)have * sizeof *x);
    const fac_status status =
        fac_resample(x, n, p->rate, p->model.rate, FAC_RESAMPLE_BEST, out, err);
    fac_release(x);
    return status;
}

/* As many samples as the model takes; resampling may give one more. */
static fac_status shape(const hearing_model *m, const fac_tensor *wave, fac_tensor **out,
                        fac_error *err) {
    const float *x = fac_tensor_data(wave);
    FAC_TRY(fac_tensor_new(NULL, FAC_F32, m->dims, out, err));
    return fac_tensor_write(*out, x, (size_t)m->window * sizeof *x, err);
}

static fac_status ask_model(hearing *p, fac_error *err) {
    const hearing_model *m = &p->model;
    const int64_t n = (m->window * p->rate + m->rate - 1) / m->rate;
    fac_tensor *wave = NULL, *x = NULL, *out[HEARING_OUTPUTS] = { NULL };
    fac_status status = window(p, n, &wave, err);
    if (!status) status = shape(m, wave, &x, err);
    if (!status) status = fac_program_run(m->program, &x, out, err);
    if (!status) status = fac_top(out[0], 0, m->labels, HEARING_BEST, p->best, &p->nbest, err);
    for (int k = 0; k < HEARING_OUTPUTS; k++) fac_tensor_free(out[k]);
    fac_tensor_free(x);
    fac_tensor_free(wave);
    return status;
}

/* A window that failed does not affect the next one. */
static void look(hearing *p) {
    const int64_t before = fac_now_ns();
    p->asked = p->at;
    p->looked = before;
    p->dirty = true;
    p->unheard = (fac_error){ 0 };
    if (ask_model(p, &p->unheard)) {
        p->nbest = 0;
        return;
    }
    p->heard = (double)p->at / p->rate;
    p->runs++;
    p->run_seconds += 1e-9 * (double)(fac_now_ns() - before);
}

/* ---- time ---- */

/* How far a file may advance by now, according to the clock. */
static int64_t due(hearing *p) {
    const int64_t now = fac_now_ns();
    if (p->source == HEARING_MICROPHONE) return p->playing ? end_of(p) : p->at;
    if (!p->playing) return p->at;
    if (!(p->setup.speed > 0)) return end_of(p);
    if (p->last) p->owed += 1e-9 * (double)(now - p->last) * p->rate * p->setup.speed;
    p->last = now;
    const int64_t whole = (int64_t)p->owed, left = end_of(p) - p->at;
    p->owed -= (double)whole;
    return p->at + (whole < left ? whole : left);
}

static bool at_end(const hearing *p) { return p->source == HEARING_FILE && p->at == end_of(p); }

/* The last window of a file: there is no next one, so it is tried again. */
static bool failed_at_end(const hearing *p) {
    return at_end(p) && p->asked == p->at && p->model.program && p->unheard.status;
}

static bool wants_look(const hearing *p) {
    if (!p->model.program) return false;
    if (at_end(p) && p->asked != p->at) return true;
    if (failed_at_end(p)) return (double)(fac_now_ns() - p->looked) >= 1e9 * look_seconds;
    return (double)(p->at - p->asked) >= look_seconds * p->rate;
}

/* Steps of at most a quarter of a second, so that no window is skipped. */
static int64_t hear_until(hearing *p, int64_t until) {
    const int64_t start = fac_now_ns(), most = (int64_t)(look_seconds * p->rate) + 1;
    do {
        const int64_t step = until - p->at < most ? until - p->at : most;
        p->at += step;
        while (make_columns(p) && fac_now_ns() - start < SLICE_NS) {}
        if (wants_look(p)) look(p);
    } while (p->at < until && fac_now_ns() - start < SLICE_NS);
    return until - p->at;
}

int64_t fac_hearing_work(void *self) {
    hearing *p = self;
    if (p->source == HEARING_NOTHING) return -1;
    const int64_t late = hear_until(p, due(p));
    if (p->source == HEARING_FILE && p->setup.speed > 0) p->owed += (double)late;
    if (p->source == HEARING_FILE && p->playing) p->dirty = true;
    const bool more = p->next + p->setup.length + (HEARING_AT_ONCE - 1) * p->hop <= p->at;
    if (late) return 0;
    if (more) return p->unseen.status ? TICK_NS : 0;
    if (at_end(p)) p->playing = false;
    if (failed_at_end(p)) return (int64_t)(1e9 * look_seconds);
    return p->playing && p->source == HEARING_FILE ? TICK_NS : -1;
}
