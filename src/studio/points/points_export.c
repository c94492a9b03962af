/* Exports of the page of points: the equivalent command line, the network as files and as code, the
 * points. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "studio/server/export.h"
#include "studio/points/points.h"
#include "studio_net_c.h"

/* The shortest text that reads back as x. */
static const char *exact(double x, char to[32]) {
    const bool whole = x == floor(x) && fabs(x) < 1e15;
    if (whole) snprintf(to, 32, "%.0f", x);
    for (int digits = 1; digits <= 17 && !whole; digits++) {
        snprintf(to, 32, "%.*g", digits, x);
        if (strtod(to, NULL) == x) break;
    }
    return to;
}

static void add_option(fac_text *to, const char *name, double x) {
    char text[32];
    fac_text_print(to, " %s %s", name, exact(x, text));
}

static fac_status command(points *p, fac_text *to, fac_error *err) {
    const points_setup *s = &p->setup;
    const int64_t done = p->in_epoch ? (p->step + p->in_epoch - 1) / p->in_epoch : 0;
    char net[128];
    (void)err;
    fac_mlp_text(&s->net, net, sizeof net);
    fac_text_print(to, "facula train toy:%s --model mlp:%s",
                   fac_points_own(s) ? "points.csv" : s->set, net);
    if (!fac_points_own(s)) add_option(to, "--points", (double)s->count);
    if (!fac_points_own(s) && s->noise > 0) add_option(to, "--noise", s->noise);
    if (s->test_part > 0) add_option(to, "--test-part", s->test_part);
    fac_text_print(to, " --optimizer %s", s->optimizer);
    add_option(to, "--lr", s->lr);
    if (s->momentum > 0) add_option(to, "--momentum", s->momentum);
    add_option(to, "--weight-decay", s->decay);
    fac_text_add(to, " --schedule constant");
    add_option(to, "--batch", (double)s->batch);
    add_option(to, "--epochs", (double)(done ? done : s->epochs));
    add_option(to, "--seed", (double)s->seed);
    if (strcmp(s->device, "cpu"))
        fac_text_print(to, " --device %s", s->device);
    else if (s->threads)
        add_option(to, "--threads", (double)s->threads);
    fac_text_add(to, " --out run\n");
    if (p->touched)
        fac_text_add(to, "# Weights or settings were changed during the training: this starts "
                         "from new weights.\n");
    else if (p->in_epoch && p->step % p->in_epoch)
        fac_text_print(
            to, "# The page is within an epoch, at step %lld; the command trains to its end.\n",
            (long long)p->step);
    return FAC_OK;
}

static fac_status python(points *p, fac_text *to, fac_error *err) {
    static const struct {
        const char *name, *module;
    } modules[] = {
        { "relu", "ReLU" }, { "tanh", "Tanh" }, { "sigmoid", "Sigmoid" }, { "gelu", "GELU" }
    };
    const fac_mlp *m = &p->setup.net;
    int in = 2;
    (void)err;
    fac_text_add(
        to, "import collections\n\nimport facula as fac\n\nlayers = collections.OrderedDict()\n");
    for (int k = 0; k <= m->n; k++) {
        const int out = k < m->n ? m->width[k] : 2;
        fac_text_print(to, "layers[\"fc%d\"] = fac.nn.Linear(%d, %d)\n", k + 1, in, out);
        in = out;
        for (size_t i = 0; k < m->n && i < sizeof modules / sizeof *modules; i++)
            if (!strcmp(modules[i].name, m->activation))
                fac_text_print(to, "layers[\"act%d\"] = fac.nn.%s()\n", k + 1, modules[i].module);
    }
    fac_text_add(to, "net = fac.nn.Sequential(layers)\n"
                     "net.load_state_dict(fac.load_weights(\"model.safetensors\"))\n"
                     "with fac.no_grad():\n"
                     "    print(net(fac.tensor([[0.25, 0.75]])).softmax(1))\n");
    return FAC_OK;
}

static fac_status torch(points *p, fac_text *to, fac_error *err) {
    return fac_points_torch(p, to, err);
}

static fac_status c_code(points *p, fac_text *to, fac_error *err) {
    static const char mark[] = "@NET@";
    const char *at = strstr(studio_net_c, mark);
    char net[128];
    (void)err;
    fac_mlp_text(&p->setup.net, net, sizeof net);
    fac_text_add_bytes(to, studio_net_c, (size_t)(at - studio_net_c));
    fac_text_print(to, "%s%s", net, at + strlen(mark));
    return FAC_OK;
}

/* In the order of the set, so that a training from the file is the same. */
static fac_status table(points *p, fac_text *to, fac_error *err) {
    const points_setup *s = &p->setup;
    fac_dataset d;
    const fac_points_opts o = { .count = s->count, .seed = (uint64_t)s->seed, .noise = s->noise };
    FAC_TRY(fac_points_own(s) ? fac_dataset_points_of(s->n, s->xy, s->label, &d, err)
                              : fac_dataset_points(s->set, &o, &d, err));
    fac_text_add(to, "x,y,label\n");
    for (int64_t i = 0; i < d.count; i++)
        fac_text_print(to, "%.9g,%.9g,%d\n", (double)d.values[2 * i], (double)d.values[2 * i + 1],
                       (int)d.labels[i]);
    fac_dataset_free(&d);
    return FAC_OK;
}

static fac_status onnx(points *p, fac_text *to, fac_error *err) {
    return fac_export_model(p->model, true, to, err);
}
static fac_status weights(points *p, fac_text *to, fac_error *err) {
    return fac_export_model(p->model, false, to, err);
}

static const struct {
    const char *name, *type;
    fac_status (*write)(points *p, fac_text *to, fac_error *err);
} files[] = { { "command.txt", "text/plain; charset=utf-8", command },
              { "net.py", "text/plain; charset=utf-8", python },
              { "torch.py", "text/plain; charset=utf-8", torch },
              { "net.c", "text/plain; charset=utf-8", c_code },
              { "points.csv", "text/csv; charset=utf-8", table },
              { "model.onnx", "application/octet-stream", onnx },
              { "model.safetensors", "application/octet-stream", weights } };

fac_status fac_points_file(void *self, const char *name, fac_text *out, const char **type,
                           fac_error *err) {
    for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
        if (strcmp(files[k].name, name)) continue;
        *type = files[k].type;
        return files[k].write(self, out, err);
    }
    return fac_raise(err, FAC_E_ARGUMENT, "unknown file");
}
