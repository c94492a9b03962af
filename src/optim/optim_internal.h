/* What optimizers share: the parameters with their gradients, states, and scalars of the step at
 * hand. */
#ifndef FACULA_OPTIM_INTERNAL_H
#define FACULA_OPTIM_INTERNAL_H
#include "facula/optim.h"
#include "graph/graph_internal.h"

typedef struct fac_step_of { /* one parameter of one step */
    const struct fac_optim_walk *walk;
    fac_value *p, *g;    /* parameter, gradient (accumulated, clipped) */
    fac_value *lr;       /* an f64 scalar: that of its group */
    double weight_decay; /* of its group, else of the optimizer */
} fac_step_of;

typedef struct fac_optim_walk {
    fac_graph *graph;
    fac_value *lr, *done,
        *step; /* f64 scalars: learning rate, steps before this one, and with it (1 at the first) */
    fac_value *apply; /* a bool scalar: this run takes the step; NULL: every run does */
    fac_value *scale; /* of the loss, an f64 state; NULL: none */
    fac_optim_opts opts;
} fac_optim_walk;

/* Calls rule() for every parameter that trains and is not frozen; it returns what the parameter
 * becomes. */
typedef fac_value *fac_optim_rule(const fac_step_of *s);
void fac_optim_each(fac_value *loss, fac_value *lr, const fac_optim_opts *opts,
                    fac_optim_rule *rule);

/* The state "<parameter>.<name>", of the parameter's type, all elements `first` in the beginning.
 */
fac_value *fac_optim_state(const fac_step_of *s, const char *name, double first);
/* A state under this whole name. */
fac_value *fac_optim_new_state(fac_graph *g, const char *name, fac_type type, double first);
/* What a parameter becomes happens only where cond, a bool scalar, is true; else it stays.  Nothing
 * when it has no update. */
void fac_update_where(fac_value *param, fac_value *cond);

/* An f64 scalar, or a number, in the parameter's element type. */
fac_value *fac_optim_as(const fac_step_of *s, fac_value *scalar);
fac_value *fac_optim_number(const fac_step_of *s, double x);
fac_value *fac_optim_f64(const fac_step_of *s, double x); /* a number as f64 scalar */
/* a + (b - a) weight: a moving average. */
fac_value *fac_optim_lerp(const fac_step_of *s, fac_value *a, fac_value *b, double weight);
/* a k */
fac_value *fac_optim_scale(const fac_step_of *s, fac_value *a, double k);
/* The gradient with L2 weight decay: g + weight_decay p. */
fac_value *fac_optim_decayed(const fac_step_of *s);

/* accumulate.c: adds the gradients up and puts the means in their place; walk->apply says when
 * those are used. */
void fac_optim_accumulate(fac_optim_walk *w, int n, fac_value *const params[], fac_value *grads[]);
/* loss_scale.c: the loss to be differentiated; the gradients of it as those of the loss, and
 * whether the step is taken. */
fac_value *fac_optim_scaled(fac_optim_walk *w, fac_value *loss);
void fac_optim_unscale(fac_optim_walk *w, int n, fac_value *grads[]);
/* clip.c: grads[] by value and by norm, as the options say. */
void fac_optim_clip(const fac_optim_walk *w, int n, fac_value *grads[]);
/* ema.c: the moving average of a parameter, which becomes `next`. */
void fac_optim_ema(const fac_step_of *s, fac_value *next);

/* What adam and adamw have in common: p after the step, from p (which adamw has made smaller
 * before). */
fac_value *fac_adam_step(const fac_step_of *s, fac_value *p, fac_value *g);
static inline double fac_optim_or(double x, double missing) { return x != 0 ? x : missing; }
#endif
