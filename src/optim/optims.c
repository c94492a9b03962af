/* The optimizers by name, for commands and bindings. */
#include <string.h>
#include "facula/optim.h"

const fac_optim fac_optims[] = {
    { "sgd", "stochastic gradient descent, with momentum and Nesterov's variant", 0.01, fac_sgd },
    { "adam", "Adam, Kingma & Ba 2015", 1e-3, fac_adam },
    { "adamw", "Adam with decoupled weight decay, Loshchilov & Hutter 2019", 1e-3, fac_adamw },
    { "rmsprop", "RMSprop, Hinton 2012", 0.01, fac_rmsprop },
    { "adagrad", "Adagrad, Duchi et al. 2011", 0.01, fac_adagrad },
    { "lion", "Lion, Chen et al. 2023", 1e-4, fac_lion },
    { .name = NULL },
};

const fac_optim *fac_optim_find(const char *name) {
    for (const fac_optim *o = fac_optims; name && o->name; o++)
        if (!strcmp(o->name, name)) return o;
    return NULL;
}
