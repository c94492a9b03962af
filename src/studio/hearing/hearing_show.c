/* Frames of the page of sounds: its state, the classes, columns of the picture. */
#include <math.h>
#include <stdio.h>
#include "studio/hearing/hearing.h"

static void put_setup(hearing *p, frames *to) {
    static const char *const sources[] = { "nothing", "file", "microphone" };
    fac_text t = { 0 };
    fac_text_add(&t, "{");
    fac_json_put_pair(&t, "generation", p->generation);
    fac_json_put_pair_text(&t, "source", sources[p->source]);
    fac_json_put_pair(&t, "rate", p->rate);
    fac_json_put_pair(&t, "length", (double)p->setup.length);
    fac_json_put_pair(&t, "part", (double)p->setup.part);
    fac_json_put_pair(&t, "mels", (double)p->setup.mels);
    fac_json_put_pair(&t, "speed", p->setup.speed);
    fac_json_put_pair(&t, "hop", (double)p->hop);
    fac_json_put_pair(&t, "bins", (double)p->bins);
    fac_json_put_pair(&t, "origin", (double)p->origin);
    fac_json_put_pair(&t, "seconds", (double)p->n / p->rate);
    if (p->deaf.status) fac_json_put_pair_text(&t, "deaf", p->deaf.text);
    if (p->model.graph) {
        fac_json_put_pair(&t, "model_rate", p->model.rate);
        fac_json_put_pair(&t, "window", (double)p->model.window);
    }
    fac_text_add(&t, "}");
    fac_frames_put(to, FRAME_SETUP, &t);
    p->fresh_setup = false;
}

static void put_classes(const hearing *p, fac_text *to) {
    fac_json_put_key(to, "classes");
    fac_text_add(to, "[");
    for (int k = 0; k < p->nbest; k++) {
        char number[32];
        snprintf(number, sizeof number, "class %lld", (long long)p->best[k].index);
        fac_text_add(to, k ? ",{" : "{");
        fac_json_put_pair_text(to, "name", p->best[k].name ? p->best[k].name : number);
        fac_json_put_pair(to, "p", p->best[k].probability);
        fac_text_add(to, "}");
    }
    fac_text_add(to, "]");
}

static void put_state(hearing *p, frames *to) {
    fac_text t = { 0 };
    fac_text_add(&t, "{");
    fac_json_put_pair(&t, "generation", p->generation);
    fac_json_put_pair_bool(&t, "playing", p->playing);
    fac_json_put_pair(&t, "at", (double)p->at / p->rate);
    fac_json_put_pair(&t, "columns", (double)p->columns);
    fac_json_put_pair(&t, "heard", p->nbest ? p->heard : NAN);
    fac_json_put_pair(&t, "took", p->runs > 0 ? p->run_seconds / p->runs : NAN);
    put_classes(p, &t);
    const fac_error *why = p->unseen.status ? &p->unseen : &p->unheard;
    if (why->status) fac_json_put_pair_text(&t, "stopped", why->text);
    fac_text_add(&t, "}");
    fac_frames_put(to, FRAME_STATE, &t);
    p->dirty = false;
}

static void add_number(fac_text *to, uint64_t x, int bytes) {
    for (int k = 0; k < bytes; k++) {
        const char c = (char)(x >> (8 * k) & 255);
        fac_text_add_bytes(to, &c, 1);
    }
}

/* All columns since the last frame, except those that are no longer kept. */
static void put_columns(hearing *p, frames *to) {
    fac_text t = { 0 };
    int64_t from = p->columns - HEARING_COLUMNS;
    if (from < p->shown) from = p->shown;
    add_number(&t, p->generation, 4);
    add_number(&t, (uint64_t)from, 4);
    add_number(&t, (uint64_t)(p->columns - from), 2);
    add_number(&t, (uint64_t)p->bins, 2);
    for (int64_t c = from; c < p->columns; c++)
        fac_text_add_bytes(&t, (const char *)p->kept[c % HEARING_COLUMNS], (size_t)p->bins);
    fac_frames_put(to, FRAME_COLUMNS, &t);
    p->shown = p->columns;
}

/* Columns wait until the page has the earlier ones: there is one slot for each kind of frame. */
void fac_hearing_show(void *self, frames *to) {
    hearing *p = self;
    const bool taken = fac_frames_taken(to);
    if (p->fresh_setup) put_setup(p, to);
    if (p->dirty) put_state(p, to);
    if (taken && p->columns > p->shown) put_columns(p, to);
}
