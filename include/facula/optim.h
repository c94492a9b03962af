/* facula/optim.h: optimizers.  Each call differentiates the loss and adds gradients, states and fac_update to the graph, for
 * every parameter that trains: one run of a program made from that graph is one training step.  The rules and the defaults
 * are PyTorch's.  States are called "<parameter>.exp_avg" and so on, as in a torch state dict; the number of steps done so
 * far is the state "optimizer.step" (i64). */
#ifndef FACULA_OPTIM_H
#define FACULA_OPTIM_H

#include "facula/ops.h"

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

/* Zero is the default everywhere; each optimizer reads its own fields. */
typedef struct fac_optim_opts {
    double weight_decay;            /* L2, added to the gradient (adamw, lion: taken off the parameter); 0 = none, but
                                       adamw: 0.01; negative: none */
    double momentum, dampening;     /* sgd, rmsprop */
    bool   nesterov;                /* sgd */
    double beta1, beta2;            /* adam, adamw: 0 = 0.9, 0.999; lion: 0 = 0.9, 0.99 */
    double eps;                     /* 0 = 1e-8; adagrad: 1e-10 */
    double alpha;                   /* rmsprop: 0 = 0.99 */
    bool   centered;                /* rmsprop */
    double lr_decay, initial;       /* adagrad: of the rate; first value of the sums */
    double clip_norm;               /* gradients are scaled down to this norm of all together; 0 = as they are */
    const char *const *freeze;      /* NULL-terminated patterns ("conv1.*", * and ? are wild): these stay as they are */
} fac_optim_opts;

/* loss: a scalar.  lr: a scalar float of the same graph, an input or a number.  opts may be NULL.  Errors are the graph's. */
void fac_sgd(fac_value *loss, fac_value *lr, const fac_optim_opts *opts);
void fac_adam(fac_value *loss, fac_value *lr, const fac_optim_opts *opts);
void fac_adamw(fac_value *loss, fac_value *lr, const fac_optim_opts *opts);
void fac_rmsprop(fac_value *loss, fac_value *lr, const fac_optim_opts *opts);
void fac_adagrad(fac_value *loss, fac_value *lr, const fac_optim_opts *opts);
void fac_lion(fac_value *loss, fac_value *lr, const fac_optim_opts *opts);

typedef struct fac_optim {
    const char *name, *help;
    double      lr;                 /* a usual rate */
    void (*build)(fac_value *loss, fac_value *lr, const fac_optim_opts *opts);
} fac_optim;
extern const fac_optim fac_optims[];                /* ends with a NULL name */
const fac_optim *fac_optim_find(const char *name);  /* NULL if there is none */

/* ---- learning rates -------------------------------------------------------------------------------------------------- */

typedef enum fac_schedule_kind {
    FAC_SCHEDULE_CONSTANT,
    FAC_SCHEDULE_STEP,              /* lr gamma^floor(t / every)                          (torch StepLR)            */
    FAC_SCHEDULE_EXPONENTIAL,       /* lr gamma^t                                         (torch ExponentialLR)     */
    FAC_SCHEDULE_COSINE,            /* low + (lr - low) (1 + cos(pi t / T)) / 2           (torch CosineAnnealingLR) */
    FAC_SCHEDULE_ONE_CYCLE          /* up from lr/25 to lr, down to lr/250,000, by cosine (torch OneCycleLR)        */
} fac_schedule_kind;

typedef struct fac_schedule {
    fac_schedule_kind kind;
    double  lr;                     /* the highest */
    int64_t steps;                  /* of the whole training, warm-up included: cosine, one-cycle */
    int64_t warmup;                 /* so many steps before, lr (t + 1) / warmup; the schedule starts behind them */
    int64_t every;                  /* step */
    double  gamma;                  /* step: 0 = 0.1; exponential: 0 = 0.95 */
    double  low;                    /* cosine */
    double  rise;                   /* one-cycle: the part of the steps that goes up; 0 = 0.3 */
} fac_schedule;

double fac_schedule_lr(const fac_schedule *s, int64_t step);    /* of step 0, 1, ... */
/* "constant", "step", "exponential", "cosine", "one-cycle" */
const char *fac_schedule_name(fac_schedule_kind kind);
bool        fac_schedule_find(const char *name, fac_schedule_kind *out);

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
