/* Frames of the page of images: numbers, the image with the pixels that matter, feature maps,
 * wrongly classified images. */
#include <math.h>
#include <string.h>
#include "base/memory.h"
#include "studio/images/images.h"

enum { OUTPUTS = 16, FIRST_MAP = 3, MAPS_MOST = 32 };
enum { GROUP_IMAGE, GROUP_SALIENCY, GROUP_MAPS, GROUP_WRONG = 100 };

static const char *const clothes[] = { "T-shirt", "trouser", "pullover", "dress", "coat",
                                       "sandal",  "shirt",   "sneaker",  "bag",   "ankle boot" };

static void add_number(fac_text *to, uint32_t x, int bytes) {
    for (int k = 0; k < bytes; k++) {
        const char c = (char)(x >> (8 * k) & 255);
        fac_text_add_bytes(to, &c, 1);
    }
}

static void add_head(fac_text *to, int group, int label, int64_t w, int64_t h) {
    add_number(to, (uint32_t)group, 1);
    add_number(to, (uint32_t)label, 1);
    add_number(to, (uint32_t)w, 2);
    add_number(to, (uint32_t)h, 2);
}

/* |x| as bytes, the largest 255. */
static void add_picture(fac_text *to, int group, int label, const float *x, int64_t w, int64_t h) {
    float most = 0;
    add_head(to, group, label, w, h);
    for (int64_t i = 0; i < w * h; i++) most = fmaxf(most, fabsf(x[i]));
    for (int64_t i = 0; i < w * h; i++)
        add_number(to, most > 0 ? (uint32_t)lroundf(255 * fabsf(x[i]) / most) : 0, 1);
}

static void put_pictures(const images *p, fac_tensor *const *out, frames *to) {
    fac_text t = { 0 }, body = { 0 };
    int n = 2;
    const float *slope = fac_tensor_data(out[2]);
    add_head(&body, GROUP_IMAGE, 0, SKETCH_SIDE, SKETCH_SIDE);
    fac_text_add_bytes(&body, (const char *)p->pixels, sizeof p->pixels);
    if (slope) add_picture(&body, GROUP_SALIENCY, 0, slope, SKETCH_SIDE, SKETCH_SIDE);
    for (int k = FIRST_MAP; k < OUTPUTS && out[k]; k++) {
        const fac_dims d = fac_tensor_type(out[k]).dims;
        const float *x = fac_tensor_data(out[k]);
        for (int64_t c = 0; x && c < d.d[1] && c < MAPS_MOST; c++, n++)
            add_picture(&body, GROUP_MAPS + k - FIRST_MAP, (int)c, x + c * d.d[2] * d.d[3], d.d[3],
                        d.d[2]);
    }
    add_number(&t, p->generation, 4);
    add_number(&t, (uint32_t)n, 2);
    if (body.n && slope)
        fac_text_add_bytes(&t, body.s, body.n);
    else
        t.failed = true;
    fac_frames_put(to, FRAME_PICTURES, &t);
    fac_text_free(&body);
}

static void put_wrong(images *p, frames *to) {
    fac_text t = { 0 };
    add_number(&t, p->generation, 4);
    add_number(&t, (uint32_t)p->nwrong, 2);
    for (int k = 0; k < p->nwrong; k++) {
        const int64_t i = p->wrong[k];
        add_head(&t, GROUP_WRONG, (int)(16 * p->test.labels[i] + p->taken_for[k]), SKETCH_SIDE,
                 SKETCH_SIDE);
        fac_text_add_bytes(&t, (const char *)p->test.bytes + i * IMAGES_PIXELS, IMAGES_PIXELS);
    }
    fac_frames_put(to, FRAME_WRONG, &t);
    p->judged = false;
}

static void put_setup(images *p, frames *to) {
    fac_text t = { 0 };
    fac_text_add(&t, "{");
    fac_json_put_pair(&t, "generation", p->generation);
    fac_json_put_pair_bool(&t, "digits", fac_images_digits(p));
    fac_json_put_pair_bool(&t, "known", p->setup.known);
    if (p->lacks.status) fac_json_put_pair_text(&t, "lacks", p->lacks.text);
    fac_json_put_key(&t, "classes");
    for (int k = 0; k < IMAGES_CLASSES; k++) {
        char digit[] = { (char)('0' + k), 0 };
        fac_text_add(&t, k ? "," : "[");
        fac_json_put_text(&t, p->setup.known || fac_images_digits(p) ? digit : clothes[k]);
    }
    fac_text_add(&t, "]");
    fac_json_put_pair(&t, "samples", (double)p->setup.samples);
    fac_json_put_pair(&t, "all", (double)p->all.count);
    fac_json_put_pair(&t, "test", (double)p->test.count);
    fac_json_put_pair(&t, "batch", (double)p->setup.batch);
    fac_json_put_pair(&t, "epochs", (double)p->setup.epochs);
    fac_json_put_pair(&t, "seed", (double)p->setup.seed);
    fac_json_put_pair(&t, "lr", p->setup.lr);
    fac_text_add(&t, "}");
    fac_frames_put(to, FRAME_SETUP, &t);
    p->fresh_setup = false;
}

static void put_state(const images *p, const fac_tensor *chances, frames *to) {
    fac_text t = { 0 };
    const float *c = chances ? fac_tensor_data(chances) : NULL;
    fac_text_add(&t, "{");
    fac_json_put_pair(&t, "generation", p->generation);
    fac_json_put_pair(&t, "step", (double)p->done.step);
    fac_json_put_pair(&t, "in_epoch", (double)p->in_epoch);
    fac_json_put_pair(&t, "epochs", (double)p->setup.epochs);
    fac_json_put_pair_bool(&t, "playing", p->playing);
    fac_json_put_pair(&t, "seconds", p->done.seconds);
    fac_json_put_pair(&t, "loss", p->done.step ? p->done.loss : NAN);
    fac_json_put_pair(&t, "accuracy", p->done.step ? p->done.accuracy : NAN);
    fac_json_put_pair(&t, "test_accuracy", fac_images_foreign(p) ? NAN : p->test_accuracy);
    fac_json_put_pair(&t, "index", (double)p->index);
    const bool unknown = p->drawn || fac_images_foreign(p);
    fac_json_put_pair(&t, "truth", unknown ? -1 : (double)p->test.labels[p->index]);
    fac_json_put_pair_bool(&t, "drawn", p->drawn);
    fac_json_put_key(&t, "chances");
    for (int k = 0; k < IMAGES_CLASSES; k++) {
        fac_text_add(&t, k ? "," : "[");
        fac_json_put_number(&t, c ? (double)c[k] : NAN);
    }
    fac_text_add(&t, "]");
    const fac_error *of[] = { &p->done.stopped, &p->unseen, &p->unjudged };
    int k = 0;
    while (k < 2 && !of[k]->status) k++;
    if (of[k]->status) fac_json_put_pair_text(&t, "stopped", of[k]->text);
    fac_text_add(&t, "}");
    fac_frames_put(to, FRAME_STATE, &t);
}

static fac_status look(images *p, fac_tensor **out) {
    const double std = p->all.std[0] > 0 ? p->all.std[0] : 1; /* without data: 1 */
    float x[IMAGES_PIXELS];
    for (int i = 0; i < IMAGES_PIXELS; i++)
        x[i] = (float)((p->pixels[i] / 255.0 - p->all.mean[0]) / std);
    p->unseen = (fac_error){ 0 };
    const fac_status status = fac_tensor_write(p->x, x, sizeof x, &p->unseen);
    return status ? status : fac_program_run(p->looker, &p->x, out, &p->unseen);
}

void fac_images_show(void *self, frames *to) {
    images *p = self;
    fac_tensor *out[OUTPUTS] = { NULL };
    if (!p->model || (!p->dirty && !p->fresh_setup)) return;
    if (p->fresh_setup) put_setup(p, to);
    p->dirty = look(p, out) != FAC_OK; /* after an error, try again */
    put_state(p, out[1], to);
    if (!p->dirty) put_pictures(p, out, to);
    if (p->judged) put_wrong(p, to);
    for (int k = 0; k < OUTPUTS; k++) fac_tensor_free(out[k]);
}
