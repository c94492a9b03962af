/* The training of the page as a PyTorch program: the same points, network, optimizer and batch
 * size, but PyTorch's own initial weights.  It prints losses and the time per step, for comparison
 * with the page. */
#include <string.h>
#include "base/error.h"
#include "studio/points/points.h"

typedef struct torch_word {
    const char *own, *torch;
} torch_word;

static const char *word(const torch_word *of, size_t n, const char *name) {
    for (size_t k = 0; k < n; k++)
        if (!strcmp(of[k].own, name)) return of[k].torch;
    return NULL;
}

static const char *activation(const char *name) {
    static const torch_word all[] = {
        { "relu", "ReLU" }, { "tanh", "Tanh" }, { "sigmoid", "Sigmoid" }, { "gelu", "GELU" }
    };
    return word(all, sizeof all / sizeof *all, name);
}

static const char *optimizer(const char *name) {
    static const torch_word all[] = { { "sgd", "SGD" },
                                      { "adam", "Adam" },
                                      { "adamw", "AdamW" },
                                      { "rmsprop", "RMSprop" },
                                      { "adagrad", "Adagrad" } };
    return word(all, sizeof all / sizeof *all, name);
}

static void network(const fac_mlp *m, fac_text *to) {
    const char *act = activation(m->activation);
    int in = 2;
    fac_text_add(to, "net = nn.Sequential(");
    for (int k = 0; k <= m->n; k++) {
        const int out = k < m->n ? m->width[k] : 2;
        fac_text_print(to, "%snn.Linear(%d, %d)", k ? ", " : "", in, out);
        if (k < m->n && act) fac_text_print(to, ", nn.%s()", act);
        in = out;
    }
    fac_text_add(to, ")\n");
}

static bool has_momentum(const points_setup *s) {
    return s->momentum > 0 && (!strcmp(s->optimizer, "sgd") || !strcmp(s->optimizer, "rmsprop"));
}

fac_status fac_points_torch(const points *p, fac_text *to, fac_error *err) {
    const points_setup *s = &p->setup;
    const char *by = optimizer(s->optimizer);
    if (!by) return fac_raise(err, FAC_E_UNSUPPORTED, "PyTorch has no optimizer %s", s->optimizer);
    fac_text_print(to,
                   "import csv, time, torch\nfrom torch import nn\n\n"
                   "rows = [[float(v) for v in r.values()] for r in "
                   "csv.DictReader(open(\"points.csv\"))]\n"
                   "train = rows[:%lld]\n"
                   "x, y = torch.tensor([r[:2] for r in train]), torch.tensor([int(r[2]) for r in "
                   "train])\n"
                   "torch.manual_seed(%lld)\n",
                   (long long)p->train.count, (long long)s->seed);
    if (s->threads) fac_text_print(to, "torch.set_num_threads(%lld)\n", (long long)s->threads);
    network(&s->net, to);
    fac_text_print(to, "optimizer = torch.optim.%s(net.parameters(), lr=%.9g, weight_decay=%.9g",
                   by, s->lr, s->decay);
    if (has_momentum(s)) fac_text_print(to, ", momentum=%.9g", s->momentum);
    fac_text_print(
        to,
        ")\nsteps = seconds = 0\nfor epoch in range(1, %lld + 1):\n"
        "    for batch in torch.randperm(len(x)).split(%lld):\n"
        "        start = time.perf_counter()\n"
        "        optimizer.zero_grad()\n"
        "        nn.functional.cross_entropy(net(x[batch]), y[batch]).backward()\n"
        "        optimizer.step()\n"
        "        seconds += time.perf_counter() - start\n"
        "        steps += 1\n"
        "    if epoch %% 10 == 0:\n"
        "        with torch.no_grad():\n"
        "            said = net(x)\n"
        "        loss = nn.functional.cross_entropy(said, y)\n"
        "        right = (said.argmax(1) == y).float().mean()\n"
        "        print(f\"epoch {epoch}, loss {loss:.4f}, accuracy {100 * right:.1f} %%, "
        "{1e6 * seconds / steps:.1f} us a step\")\n",
        (long long)s->epochs, (long long)s->batch);
    return FAC_OK;
}
