/* Questions that need no session: one request, one answer. */
#include "studio/sandbox/sandbox.h"
#include "base/error.h"
#include "studio/server/studio.h"

const question fac_questions[] = { { "functions", fac_sandbox_functions },
                                   { "curve", fac_sandbox_curve },
                                   { "graph", fac_sandbox_graph },
                                   { "layout", fac_sandbox_layout },
                                   { "broadcast", fac_sandbox_broadcast },
                                   { "modules", fac_sandbox_modules },
                                   { NULL, NULL } };

fac_status fac_sandbox_run(fac_graph *g, fac_device **device, fac_tensor *const in[],
                           fac_tensor *out[], fac_error *err) {
    const fac_device_opts how = { .threads = 1 };
    fac_program *p;
    FAC_TRY(fac_graph_check(g, err));
    FAC_TRY(fac_device_open("cpu", &how, device, err));
    FAC_TRY(fac_program_new(g, *device, NULL, &p, err));
    const fac_status status = fac_program_run(p, in, out, err);
    fac_program_free(p);
    return status;
}

fac_status fac_sandbox_tensor(fac_dims dims, const double *x, fac_tensor **out, fac_error *err) {
    fac_tensor *t;
    const fac_type type = { FAC_F64, dims };
    FAC_TRY(fac_tensor_new(NULL, FAC_F64, dims, &t, err));
    const fac_status status = fac_tensor_write(t, x, fac_type_bytes(&type), err);
    if (status)
        fac_tensor_free(t);
    else
        *out = t;
    return status;
}

fac_status fac_sandbox_dims(const cJSON *from, const char *key, int64_t low, int64_t high,
                            fac_dims *out, fac_error *err) {
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(from, key), *one;
    fac_dims d = { 0 };
    if (!list) return FAC_OK;
    if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) > SANDBOX_RANK)
        return fac_raise(err, FAC_E_ARGUMENT, "%s must be a list of at most %d numbers", key,
                         SANDBOX_RANK);
    cJSON_ArrayForEach(one, list) {
        const double x = cJSON_IsNumber(one) ? one->valuedouble : (double)high + 1;
        if (!(x >= (double)low && x <= (double)high) || x != (double)(int64_t)x)
            return fac_raise(err, FAC_E_ARGUMENT, "%s must hold integers from %lld to %lld", key,
                             (long long)low, (long long)high);
        d.d[d.n++] = (int64_t)x;
    }
    *out = d;
    return FAC_OK;
}

void fac_sandbox_put_dims(fac_text *to, const char *key, const fac_dims *d) {
    fac_json_put_key(to, key);
    fac_text_add(to, "[");
    for (int k = 0; k < d->n; k++) fac_text_print(to, k ? ",%lld" : "%lld", (long long)d->d[k]);
    fac_text_add(to, "]");
}

void fac_sandbox_put_tensor(fac_text *to, const char *key, const fac_tensor *t) {
    const fac_type type = fac_tensor_type(t);
    const double *x = fac_tensor_data(t);
    const int64_t n = x && type.dtype == FAC_F64 ? fac_dims_count(&type.dims) : 0;
    fac_json_put_key(to, key);
    fac_text_add(to, "[");
    for (int64_t i = 0; i < n && i < SANDBOX_NUMBERS; i++) {
        if (i) fac_text_add(to, ",");
        fac_json_put_number(to, x[i]);
    }
    fac_text_add(to, "]");
}
