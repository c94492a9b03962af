/* The page of a training in a user's program. */
#include <string.h>
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "studio/server/session.h"

#define LOOK_NS INT64_C(100000000)

typedef struct notebook_page {
    notebook *notebook;
    notebook_turn seen; /* last ones shown */
    int64_t looked;
    uint32_t generation; /* of the weights */
    bool began, curves, weights;
} notebook_page;

static void close_page(void *self) { fac_release(self); }

static fac_status open_page(const studio_means *with, const cJSON *how, void **self,
                            fac_error *err) {
    notebook_page *p = fac_alloc(1, sizeof *p);
    (void)how;
    if (!p) return fac_raise_memory(err, "a page");
    p->notebook = with->notebook;
    *self = p;
    return FAC_OK;
}

static fac_status command(void *self, const cJSON *what, fac_text *answer, fac_error *err) {
    notebook_page *p = self;
    const char *name = fac_json_string_of(what, "do");
    (void)answer;
    if (!name || strcmp(name, "stop")) return fac_raise(err, FAC_E_ARGUMENT, "unknown command");
    fac_notebook_stop(p->notebook);
    p->curves = true;
    return FAC_OK;
}

static int64_t work(void *self) {
    notebook_page *p = self;
    const int64_t now = fac_now_ns();
    if (now - p->looked < LOOK_NS) return LOOK_NS;
    p->looked = now;
    const notebook_turn turn = fac_notebook_turn(p->notebook);
    p->curves |= !p->began || turn.curves != p->seen.curves;
    p->weights |= turn.weights != p->seen.weights;
    p->seen = turn;
    p->began = true;
    return LOOK_NS;
}

static void put_weights(notebook_page *p, frames *to) {
    fac_text t = { 0 }, pictures = { 0 };
    p->generation++;
    for (int k = 0; k < 4; k++) {
        const char c = (char)(p->generation >> (8 * k) & 255);
        fac_text_add_bytes(&pictures, &c, 1);
    }
    fac_text_add(&t, "{");
    fac_json_put_pair(&t, "generation", p->generation);
    fac_notebook_put_weights(p->notebook, &t, &pictures);
    fac_text_add(&t, "}");
    fac_frames_put(to, FRAME_PANELS, &t);
    fac_frames_put(to, FRAME_PICTURES, &pictures);
    p->weights = false;
}

static void show(void *self, frames *to) {
    notebook_page *p = self;
    if (p->curves) {
        fac_text t = { 0 };
        fac_text_add(&t, "{");
        fac_json_put_pair_bool(&t, "stopped", fac_notebook_stopped(p->notebook));
        fac_notebook_put_curves(p->notebook, &t);
        fac_text_add(&t, "}");
        fac_frames_put(to, FRAME_STATE, &t);
        p->curves = false;
    }
    if (p->weights) put_weights(p, to);
}

const page fac_page_notebook = { .name = "notebook",
                                 .open = open_page,
                                 .close = close_page,
                                 .command = command,
                                 .work = work,
                                 .show = show };
