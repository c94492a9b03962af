/* Shared by the files of the sandboxes: small questions of the course's first modules, answered by
 * the engine. */
#ifndef FACULA_STUDIO_SANDBOX_H
#define FACULA_STUDIO_SANDBOX_H
#include "facula/program.h"
#include "studio/sandbox/expression.h"
#include "studio/server/json.h"

enum { SANDBOX_NUMBERS = 4096, SANDBOX_RANK = 4 };

/* Runs g once on one thread of a new cpu device; out[] as in fac_program_run.  *device must be NULL
 * before; the caller frees it after out[], also after an error. */
fac_status fac_sandbox_run(fac_graph *g, fac_device **device, fac_tensor *const in[],
                           fac_tensor *out[], fac_error *err);
fac_status fac_sandbox_tensor(fac_dims dims, const double *x, fac_tensor **out, fac_error *err);
/* A list of integers; if it is absent, *out does not change. */
fac_status fac_sandbox_dims(const cJSON *from, const char *key, int64_t low, int64_t high,
                            fac_dims *out, fac_error *err);
void fac_sandbox_put_dims(fac_text *to, const char *key, const fac_dims *d);
/* "key": [numbers of a contiguous tensor, as f64], at most SANDBOX_NUMBERS. */
void fac_sandbox_put_tensor(fac_text *to, const char *key, const fac_tensor *t);

fac_status fac_sandbox_functions(const cJSON *what, fac_text *to,
                                 fac_error *err); /* sandbox_function.c */
fac_status fac_sandbox_curve(const cJSON *what, fac_text *to, fac_error *err);
fac_status fac_sandbox_graph(const cJSON *what, fac_text *to, fac_error *err); /* sandbox_graph.c */
fac_status fac_sandbox_layout(const cJSON *what, fac_text *to,
                              fac_error *err); /* sandbox_layout.c */
fac_status fac_sandbox_broadcast(const cJSON *what, fac_text *to, fac_error *err);
fac_status fac_sandbox_modules(const cJSON *what, fac_text *to,
                               fac_error *err); /* sandbox_modules.c */

/* The graph of a question for export: f32, with only the inputs that it reads. */
fac_status fac_sandbox_curve_graph(const cJSON *what, fac_graph **out, fac_error *err);
fac_status fac_sandbox_expression_graph(const cJSON *what, fac_graph **out, fac_error *err);
/* The elements of an expression's inputs as arguments of net.py, with "--" between inputs. */
fac_status fac_sandbox_put_numbers(const cJSON *what, const fac_graph *g, fac_text *to,
                                   fac_error *err);
fac_status fac_sandbox_modules_graph(const cJSON *what, fac_graph **out, fac_error *err);
fac_status fac_sandbox_text(const fac_graph *g, fac_text *to, fac_error *err);
#endif
