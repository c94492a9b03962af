/* Where a node stands in the tree of modules, and the classes of these, as PyTorch's exporter
 * (torch.export) says it. */
#ifndef FACULA_ONNX_MODULE_H
#define FACULA_ONNX_MODULE_H
#include "onnx/import.h"

/* "layer1.0.conv1.Conv": the module of a node and its operator, as the older exporter would call
 * it, with a number after it where the module has several.  The classes of all modules on the way
 * become those of the graph.  NULL: the file does not say it, or the memory is gone (an error of
 * the graph). */
const char *fac_import_module(fac_body *b, const fac_proto_node *n);
#endif
