/* What people call a node by: where it stands, of which kind it is, and whether a name means it. */
#ifndef FACULA_PASSES_SELECT_H
#define FACULA_PASSES_SELECT_H
#include "graph/graph_internal.h"

/* kind.c: the class of a node, and the name that PyTorch's users know one of that class by. */
fac_layer_class fac_class_of(const fac_node *n);
const char *fac_kind_of(const fac_node *n, fac_layer_class is);
/* A node that the importer could not build, and a result of one of which nothing is known. */
bool fac_is_opaque(const fac_node *n);
bool fac_is_unknown(const fac_value *v);
/* Data of a run, as against a parameter, a constant or what is made from these before it. */
bool fac_is_data(const fac_value *v);

/* module_path.c: where a node stands ("layer1.0.conv1"), from the scope or the name that the file
 * gave it; NULL: memory. */
const char *fac_module_path(fac_arena *a, const fac_node *n);

/* select.c: the one language in which nodes are chosen.  A pattern is a word, or several with
 * commas:
 *
 *   op:conv2d     by facula's operator
 *   kind:Conv2d   by PyTorch's name of such a layer
 *   NAME          what any view prints: the node's label, its name in the ONNX file, that of a
 *                 value it makes (BY_NAME), or a module that it is or stands in (BY_MODULE)
 *
 * A * stands for any text.  Of all words the best answer counts. */
typedef enum fac_selected { FAC_NOT_SELECTED, FAC_BY_MODULE, FAC_BY_NAME } fac_selected;
fac_selected fac_select(const fac_node *n, const char *pattern);
/* The same of a name alone. */
bool fac_select_name(const char *name, const char *pattern);
#endif
