/* What ONNX says of its own operators: defaults.c is made by scripts/onnx_defaults.py. */
#ifndef FACULA_ONNX_DEFAULTS_H
#define FACULA_ONNX_DEFAULTS_H

/* "*1": 1 along each axis of the plane.  until 0: still. */
typedef struct fac_onnx_default {
    const char *domain, *type, *attr, *value;
    int since, until;
} fac_onnx_default;
typedef struct fac_onnx_op_name { const char *domain, *type; } fac_onnx_op_name;
extern const fac_onnx_default fac_onnx_defaults[]; /* sorted by domain and type; ends with { 0 } */
extern const fac_onnx_op_name fac_onnx_op_names[]; /* all that ONNX has ever had; ends with { 0 } */
#endif
