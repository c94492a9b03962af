/* facula/optim.h: optimizers.  Each call differentiates the loss and adds gradients, states and
 * fac_update to the graph, for every parameter that trains: one run of a program made from that
 * graph is one training step.  The rules and the defaults are PyTorch's.  States are called
 * "<parameter>.exp_avg" and so on, as in a torch state dict; the number of steps done so far is the
 * state "optimizer.step" (i64). */
#ifndef FACULA_OPTIM_H
#define FACULA_OPTIM_H

#include "facula/ops.h"

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

/* What holds for some parameters only.  The first group that a parameter belongs to counts, and no
 * other one. */
typedef struct fac_optim_group {
    const char *pattern; /* of the name: "conv1.*", * and ? are wild; NULL: any name */
    bool vectors;        /* only rank 0 and 1: biases, and what norms have */
    bool freeze;         /* these stay as they are */
    double lr;           /* times the learning rate; 0 = 1 */
    double weight_decay; /* instead of that of the optimizer; 0 = the same; negative: none */
} fac_optim_group;

/* Zero is the default everywhere; each optimizer reads its own fields. */
typedef struct fac_optim_opts {
    double weight_decay; /* L2, added to the gradient (adamw, lion: taken off the parameter); 0 =
                            none, but adamw: 0.01; negative: none */
    double momentum, dampening; /* sgd, rmsprop */
    bool nesterov;              /* sgd */
    double beta1, beta2;        /* adam, adamw: 0 = 0.9, 0.999; lion: 0 = 0.9, 0.99 */
    double eps;                 /* 0 = 1e-8; adagrad: 1e-10 */
    double alpha;               /* rmsprop: 0 = 0.99 */
    bool centered;              /* rmsprop */
    double lr_decay, initial;   /* adagrad: of the rate; first value of the sums */
    double clip_value; /* every element of a gradient is cut to [-this, this]; 0 = as it is */
    double clip_norm;  /* after that, gradients are scaled down to this norm of all together; 0 = as
                          they are */
    const char *const *
        freeze; /* NULL-terminated patterns ("conv1.*", * and ? are wild): these stay as they are */
    const fac_optim_group *groups;
    int ngroups;

    /* Gradient accumulation: a run adds its gradients to the states "<parameter>.accum", every
     * accumulate-th takes the step, with their mean.  0, 1: every run takes one.  weight: how much
     * a run counts in that mean, a scalar, say its number of samples; NULL: all alike.  flush: a
     * bool scalar, true takes the step now, with what there is; NULL: never. States beside:
     * "optimizer.batch", runs so far (i64); of those since the last step "optimizer.micro", how
     * many (i64), and "optimizer.weight" (f64). */
    int accumulate;
    fac_value *weight, *flush;

    /* Dynamic loss scaling, for models in f16 (fac_graph_autocast): the states
     * "optimizer.loss_scale" (f64, 65536 at first) and "optimizer.good_steps" (i64).  A step whose
     * gradients overflow is not taken and halves the scale; with accumulation such a batch adds
     * nothing. */
    bool loss_scaling;

    /* Moving averages of the parameters, "<parameter>.ema": ema <- ema + (1 - d) (p - ema) after
     * each step, which begin as copies.  d = this decay; with warm-up min(decay, (1 + t) / (10 +
     * t)) in step t = 0, 1...  0 = none. */
    double ema;
    bool ema_warmup;
} fac_optim_opts;

/* loss: a scalar.  lr: a scalar float of the same graph, an input or a number.  opts may be NULL.
 * Errors are the graph's. */
void fac_sgd(fac_value *loss, fac_value *lr, const fac_optim_opts *opts);
/* Adam (Kingma and Ba 2015); decay is added to the gradient. */
void fac_adam(fac_value *loss, fac_value *lr, const fac_optim_opts *opts);
/* AdamW (Loshchilov and Hutter 2019): decay apart from the gradient. */
void fac_adamw(fac_value *loss, fac_value *lr, const fac_optim_opts *opts);
/* RMSprop as torch has it. */
void fac_rmsprop(fac_value *loss, fac_value *lr, const fac_optim_opts *opts);
/* Adagrad (Duchi et al. 2011) as torch has it. */
void fac_adagrad(fac_value *loss, fac_value *lr, const fac_optim_opts *opts);
/* Lion (Chen et al. 2023): the sign of a momentum. */
void fac_lion(fac_value *loss, fac_value *lr, const fac_optim_opts *opts);

typedef struct fac_optim {
    const char *name, *help;
    double lr; /* a usual rate */
    void (*build)(fac_value *loss, fac_value *lr, const fac_optim_opts *opts);
} fac_optim;
extern const fac_optim fac_optims[];               /* ends with a NULL name */
const fac_optim *fac_optim_find(const char *name); /* NULL if there is none */

/* ---- learning rates ---- */

typedef enum fac_schedule_kind {
    FAC_SCHEDULE_CONSTANT,
    FAC_SCHEDULE_STEP, /* lr gamma^floor(t / every)                          (torch StepLR) */
    FAC_SCHEDULE_EXPONENTIAL, /* lr gamma^t                                         (torch
                                 ExponentialLR)     */
    FAC_SCHEDULE_COSINE,      /* low + (lr - low) (1 + cos(pi t / T)) / 2           (torch
                                 CosineAnnealingLR) */
    FAC_SCHEDULE_ONE_CYCLE, /* up from lr/25 to lr, down to lr/250,000, by cosine (torch OneCycleLR)
                             */
    FAC_SCHEDULE_LINEAR, /* lr + (low - lr) min(t, T) / T                      (torch LinearLR) */
    FAC_SCHEDULE_POLYNOMIAL, /* lr (1 - min(t, T) / T)^power                       (torch
                                PolynomialLR)      */
    FAC_SCHEDULE_RESTARTS,   /* cosines of `every`, then `multiple` times that...  (torch
                                CosineAnnealingWarmRestarts) */
    FAC_SCHEDULE_PLATEAU     /* lr; times gamma when the loss does not fall        (torch
                                ReduceLROnPlateau) */
} fac_schedule_kind;

typedef struct fac_schedule {
    fac_schedule_kind kind;
    double lr;      /* the highest */
    int64_t steps;  /* of the whole training, warm-up included: T + warmup */
    int64_t warmup; /* so many steps before, lr (t + 1) / warmup; the schedule starts after them */
    int64_t every;  /* step, restarts */
    double gamma;   /* step, plateau: 0 = 0.1; exponential: 0 = 0.95 */
    double low;     /* cosine, restarts, linear, plateau: the lowest */
    double rise;    /* one-cycle: the part of the steps that goes up; 0 = 0.3 */
    double power;   /* polynomial: 0 = 1 */
    int64_t multiple;           /* restarts: 0 = 1 */
    int64_t patience, cooldown; /* plateau: epochs without progress that are borne, 0 = 10,
                                   negative: none; after a cut */
    double threshold;           /* plateau: what counts as progress; 0 = 1e-4, negative: any */
    bool absolute, rising; /* plateau: threshold is a difference, not a share (torch's "abs"); the
                              metric shall rise ("max") */
} fac_schedule;

double fac_schedule_lr(const fac_schedule *s,
                       int64_t step); /* of step 0, 1, ...; plateau: without its cuts */
/* "constant", "step", "exponential", "cosine", "one-cycle", "linear", "polynomial", "restarts",
 * "plateau" */
const char *fac_schedule_name(fac_schedule_kind kind);
/* The inverse of fac_schedule_name; false: no such schedule, *out is untouched. */
bool fac_schedule_find(const char *name, fac_schedule_kind *out);

/* The memory of a plateau: all zero in the beginning. */
typedef struct fac_plateau {
    int64_t seen, bad,
        cooldown; /* metrics so far; epochs without progress; epochs that are still not counted */
    double best, lr; /* lr 0: not cut yet, that of the schedule */
} fac_plateau;
void fac_plateau_next(const fac_schedule *s, double metric, fac_plateau *p); /* after an epoch */
/* The rate of a step with the cuts so far. */
double fac_plateau_lr(const fac_schedule *s, const fac_plateau *p, int64_t step);

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
