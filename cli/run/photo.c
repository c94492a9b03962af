/* How photos are prepared for a model, and who says so. */
#include "photo.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "sidecar.h"

/* ---- who says so ---- */

static void take(photo_plan *p, const fac_preprocess *how, photo_source from) {
    const fac_preset *named = fac_preprocess_preset(how);
    p->how = *how;
    p->from = from;
    snprintf(p->name, sizeof p->name, "%s", named ? named->name : "");
}

static int of_option(const char *spec, photo_plan *p) {
    fac_error err = { 0 };
    fac_preprocess how;
    if (fac_preprocess_parse(spec, &how, &err)) {
        fprintf(stderr, "facula: --preset: %s (see `facula help run`)\n", err.text);
        return EXIT_USAGE;
    }
    take(p, &how, PHOTO_OPTION);
    /* of two presets with equal numbers the one that was asked for */
    if (fac_preset_find(spec)) snprintf(p->name, sizeof p->name, "%s", spec);
    return EXIT_OK;
}

static int of_metadata(const char *text, photo_plan *p) {
    fac_error err = { 0 };
    fac_preprocess how;
    if (fac_preprocess_parse(text, &how, &err))
        return fail_text("the model's metadata %s: %s (--preset SPEC leaves it alone)",
                         FAC_NOTE_PRESET, err.text);
    take(p, &how, PHOTO_METADATA);
    return EXIT_OK;
}

static int of_sidecar(const char *path, photo_plan *p, bool *found) {
    sidecar s;
    const int code = sidecar_read(path, SIDECAR_PRESET, &s);
    *found = !code && s.preset;
    if (!*found) return code;
    take(p, &s.how, PHOTO_SIDECAR);
    snprintf(p->file, sizeof p->file, "%s", s.file);
    return EXIT_OK;
}

int photo_plan_of(const photo_options *o, const model *m, photo_plan *out) {
    const char *note = m->zoo ? NULL : fac_graph_note(m->graph, FAC_NOTE_PRESET);
    const fac_preset *zoo = m->zoo ? fac_preset_find(m->zoo->preset) : NULL;
    bool found = false;
    *out = (photo_plan){ 0 };
    if (o && o->preset) return of_option(o->preset, out);
    if (note) return of_metadata(note, out);
    if (!zoo) {
        const int code = of_sidecar(m->path, out, &found);
        if (code || found) return code;
    }
    const fac_preset *p = zoo ? zoo : fac_preset_find("imagenet");
    take(out, &p->how, zoo ? PHOTO_ZOO : PHOTO_GUESS);
    return EXIT_OK;
}

/* ---- what the input says ---- */

static int layout(photo_plan *p, const fac_dims *d) {
    const bool first = d->n == 4 && (d->d[1] == 1 || d->d[1] == 3);
    const bool last = d->n == 4 && (d->d[3] == 1 || d->d[3] == 3);
    if (!first && !last && !(d->n == 4 && d->d[1] < 0))
        return fail_text("the model's input is not an image: give its tensor with --input");
    if (first || last) p->how.nhwc = !first;
    return EXIT_OK;
}

/* The input's own size; the shorter side keeps the preset's margin around the crop. */
static void fit(fac_preprocess *h, int64_t height, int64_t width, bool sized) {
    const int64_t most = 65536, shorter = height < width ? height : width;
    if (height < 1 || width < 1 || height > most || width > most) return;
    const int crop = h->height < h->width ? h->height : h->width;
    if (h->resize && crop && !sized) h->resize = (int)(h->resize * shorter / crop);
    h->height = (int)height;
    h->width = (int)width;
}

/* ---- single options ---- */

static int set(photo_plan *p, const char *key, const char *value) {
    char spec[FAC_PREPROCESS_TEXT];
    fac_error err = { 0 };
    if (!value) return EXIT_OK;
    if (fac_preprocess_print(&p->how, spec, sizeof spec) < 0) return fail_text("out of memory");
    const size_t n = strlen(spec);
    snprintf(spec + n, sizeof spec - n, ",%s=%s", key, value);
    const bool one = !strchr(value, '=') && strlen(spec) + 1 < sizeof spec;
    if (!one) snprintf(err.text, sizeof err.text, "\"%.60s\" is not a value", value);
    if (!one || fac_preprocess_parse(spec, &p->how, &err)) {
        fprintf(stderr, "facula: --%s: %s (see `facula help run`)\n", key, err.text);
        return EXIT_USAGE;
    }
    p->changed = true;
    return EXIT_OK;
}

static int single_options(const photo_options *o, photo_plan *p) {
    int code = set(p, "size", o->size);
    if (!code) code = set(p, "crop", o->crop);
    if (!code) code = set(p, "scale", o->scale);
    if (!code) code = set(p, "mean", o->mean);
    if (!code) code = set(p, "std", o->std);
    if (!code) code = set(p, "interpolation", o->interpolation);
    if (!code) code = set(p, "layout", o->layout);
    if (!code && o->bgr) code = set(p, "order", "bgr");
    return code;
}

int photo_plan_input(const photo_options *o, const model *m, fac_type input, photo_plan *out) {
    const fac_dims *d = &input.dims;
    int code = photo_plan_of(o, m, out);
    if (!code) code = layout(out, d);
    if (!code) code = single_options(o, out);
    if (code) return code;
    const bool nhwc = out->how.nhwc, scaled = o->size && strchr(o->size, 'x');
    if (d->d[nhwc ? 3 : 1] == 1) out->how.grey = true;
    const int64_t *size = &d->d[nhwc ? 1 : 2]; /* height and width */
    if (!o->crop && !scaled) fit(&out->how, size[0], size[1], o->size != NULL);
    out->how.dtype = input.dtype;
    return EXIT_OK;
}

bool photo_among(list files) {
    for (int i = 0; i < files.n; i++) {
        const char *equals = strchr(files.at[i], '=');
        if (is_image(files.at[i]) || (equals && is_image(equals + 1))) return true;
    }
    return false;
}

int photo_options_fit(const photo_options *o, const verb *v, list files, list named) {
    const struct {
        const char *name;
        bool given;
    } all[] = {
        { "preset", o->preset }, { "size", o->size },     { "crop", o->crop },
        { "mean", o->mean },     { "std", o->std },       { "scale", o->scale },
        { "bgr", o->bgr },       { "layout", o->layout }, { "interpolation", o->interpolation }
    };
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        if (all[k].given && !photo_among(files) && !photo_among(named))
            return usage_error(v, "--%s is for photos, and no input is one", all[k].name);
    return EXIT_OK;
}

void photo_plan_trained(const fac_dataset *d, photo_source from, photo_plan *out) {
    fac_preprocess how = { .height = (int)d->item.d[1],
                           .width = (int)d->item.d[2],
                           .how = FAC_BILINEAR,
                           .grey = d->item.d[0] == 1 };
    memcpy(how.mean, d->mean, sizeof how.mean);
    memcpy(how.std, d->std, sizeof how.std);
    *out = (photo_plan){ 0 };
    take(out, &how, from);
}

fac_status photo_tensor(const char *path, const photo_plan *plan, fac_tensor **out,
                        fac_error *err) {
    fac_image image = { 0 };
    fac_status status = fac_image_load(path, &image, err);
    if (!status) status = fac_image_tensor(&image, &plan->how, out, err);
    fac_image_free(&image);
    return status;
}

int photo_note(fac_graph *g, const fac_preprocess *how) {
    char spec[FAC_PREPROCESS_TEXT];
    fac_error err = { 0 };
    if (fac_preprocess_print(how, spec, sizeof spec) < 0) return fail_text("out of memory");
    fac_graph_set_note(g, FAC_NOTE_PRESET, spec);
    return fac_graph_check(g, &err) ? fail(&err) : EXIT_OK;
}
