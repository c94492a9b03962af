/* ai.onnx.ml's LabelEncoder, of every version: from keys to values by their places. */
#include "ops/ml/ml.h"

/* A list in one of four attributes; NULL: none of them is there, or an error of the graph. */
static fac_value *list_of(const fac_onnx_node *n, fac_graph *g, const char *texts, const char *ints,
                          const char *floats, const char *tensor) {
    const fac_ml_texts t = fac_ml_texts_of(n, g, texts);
    const fac_ml_ints i = fac_ml_ints_of(n, g, ints);
    const fac_ml_reals f = fac_ml_reals_of(n, g, floats);
    if (t.n >= 0) return fac_ml_const(g, FAC_TEXT, t.n, t.v);
    if (i.n >= 0) return fac_ml_const(g, FAC_I64, i.n, i.v);
    if (f.n >= 0) return fac_ml_numbers(g, FAC_F32, fac_shape(f.n), f.v);
    fac_tensor *all = fac_onnx_tensor(n, tensor);
    return all ? fac_const(g, all) : NULL;
}

/* What stands for keys that are not there, a list of one element. */
static fac_value *default_of(const fac_onnx_node *n, fac_graph *g, const fac_value *values) {
    fac_tensor *t = fac_onnx_tensor(n, "default_tensor");
    const char *text = fac_onnx_text(n, "default_string", "_Unused");
    const int64_t number = fac_onnx_int(n, "default_int64", -1);
    const double real = fac_onnx_real(n, "default_float", -0.0);
    const fac_dtype dtype = values->type.dtype;
    if (t) return fac_reshape(fac_const(g, t), fac_shape(1));
    if (dtype == FAC_TEXT) return fac_ml_const(g, FAC_TEXT, 1, &text);
    const double x = fac_dtype_get(dtype)->kind == 'f' ? real : (double)number;
    return fac_ml_numbers(g, dtype, fac_shape(1), &x);
}

static void load(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[]) {
    fac_value *keys = list_of(n, g, "keys_strings", "keys_int64s", "keys_floats", "keys_tensor");
    fac_value *values =
        list_of(n, g, "values_strings", "values_int64s", "values_floats", "values_tensor");
    if (!keys || !values) {
        fac_fail_graph(g, FAC_E_FORMAT, "LabelEncoder lacks its %s", keys ? "values" : "keys");
        return;
    }
    if (fac_dims_count(&keys->type.dims) != fac_dims_count(&values->type.dims)) {
        fac_fail_graph(g, FAC_E_FORMAT, "LabelEncoder has %lld keys and %lld values",
                       (long long)fac_dims_count(&keys->type.dims),
                       (long long)fac_dims_count(&values->type.dims));
        return;
    }
    fac_value *all = fac_concat((fac_value *[]){ values, default_of(n, g, values) }, 2, 0);
    out[0] = fac_gather(all, fac_find_keys(in[0], keys, false), 0);
}

/* Version 1: a text becomes its place among the classes, an integer the class of that place. */
static void load_1(const fac_onnx_node *n, fac_graph *g, fac_value *const in[], fac_value *out[]) {
    const fac_ml_texts t = fac_ml_texts_of(n, g, "classes_strings");
    const char *text = fac_onnx_text(n, "default_string", "_Unused");
    const int64_t number = fac_onnx_int(n, "default_int64", -1);
    if (t.n < 0) {
        fac_fail_graph(g, FAC_E_FORMAT, "LabelEncoder lacks its classes_strings");
        return;
    }
    fac_value *classes = fac_ml_const(g, FAC_TEXT, t.n, t.v),
              *places = fac_arange(fac_number(g, FAC_I64, 0), fac_number(g, FAC_I64, t.n),
                                   fac_number(g, FAC_I64, 1));
    const bool to_text = in[0]->type.dtype != FAC_TEXT;
    fac_value *other =
        to_text ? fac_ml_const(g, FAC_TEXT, 1, &text) : fac_ml_const(g, FAC_I64, 1, &number);
    fac_value *all = fac_concat((fac_value *[]){ to_text ? classes : places, other }, 2, 0);
    out[0] = fac_gather(all, fac_find_keys(in[0], to_text ? places : classes, false), 0);
}

const fac_onnx fac_reads_label_encoder[] = { { FAC_ML, "LabelEncoder", 2, 0, NULL, load, 1 },
                                             { FAC_ML, "LabelEncoder", 1, 1, NULL, load_1, 1 },
                                             { 0 } };
