/* Safetensors (huggingface.co/docs/safetensors): 8 bytes of length, a JSON object of that length,
 * then the data.
 *   {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, ..., "__metadata__":
 *       {"key": "text"}}
 * Offsets count from the end of the header.  As the format demands, the tensors cover the data
 * without overlaps and gaps. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <cjson/cJSON.h>
#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "tensor/tensor_internal.h"
#include "tensor/weights.h"

enum { PREFIX = 8, LARGEST_HEADER = 100 * 1000 * 1000 };

static const struct {
    const char *name;
    fac_dtype dtype;
} names[] = {
    { "F32", FAC_F32 },        { "F64", FAC_F64 },        { "F16", FAC_F16 },
    { "BF16", FAC_BF16 },      { "I8", FAC_I8 },          { "I16", FAC_I16 },
    { "I32", FAC_I32 },        { "I64", FAC_I64 },        { "U8", FAC_U8 },
    { "U16", FAC_U16 },        { "U32", FAC_U32 },        { "U64", FAC_U64 },
    { "BOOL", FAC_BOOL },      { "F8_E4M3", FAC_F8E4M3 }, { "F8_E5M2", FAC_F8E5M2 },
    { "F8_E8M0", FAC_F8E8M0 },
};
enum { NAMES = sizeof names / sizeof *names };

/* ---- reading ---- */

/* Exact integers up to 2^53, more than any file has bytes. */
static bool whole(const cJSON *json, int64_t *out) {
    double x = cJSON_IsNumber(json) ? json->valuedouble : -1;
    if (!(x >= 0 && x <= 0x1p53) || x != (double)(int64_t)x) return false;
    *out = (int64_t)x;
    return true;
}

typedef struct range {
    size_t begin, end;
    const char *name;
} range;

/* FAC_E_UNSUPPORTED: no type of ours. */
static fac_status read_type(const char *dtype, const cJSON *shape, fac_type *type, fac_error *err) {
    const cJSON *d;
    for (int k = 0; k < NAMES; k++)
        if (!strcmp(names[k].name, dtype)) type->dtype = names[k].dtype;
    if (!type->dtype) return fac_raise(err, FAC_E_UNSUPPORTED, "element type \"%.40s\"", dtype);
    cJSON_ArrayForEach(d, shape) {
        if (type->dims.n == FAC_DIMS)
            return fac_raise(err, FAC_E_UNSUPPORTED, "more than %d dims", FAC_DIMS);
        if (!whole(d, &type->dims.d[type->dims.n++]))
            return fac_raise(err, FAC_E_FORMAT, "a dim that is no size");
    }
    return FAC_OK;
}

static fac_status read_tensor(const cJSON *json, fac_file *file, size_t data, fac_weights *w,
                              range *r, fac_error *err) {
    const cJSON *dtype = cJSON_GetObjectItemCaseSensitive(json, "dtype");
    const cJSON *shape = cJSON_GetObjectItemCaseSensitive(json, "shape");
    const cJSON *offsets = cJSON_GetObjectItemCaseSensitive(json, "data_offsets");
    fac_type type = { FAC_NONE, { 0, { 0 } } };
    fac_error why = { 0 };
    int64_t begin, end;
    if (!cJSON_IsString(dtype) || !cJSON_IsArray(shape) || cJSON_GetArraySize(offsets) != 2 ||
        !whole(offsets->child, &begin) || !whole(offsets->child->next, &end))
        return fac_raise(err, FAC_E_FORMAT, "needs dtype, shape and data_offsets");
    const size_t room = fac_file_size(file) - data;
    if (begin > end || (uint64_t)end > room)
        return fac_raise(err, FAC_E_FORMAT,
                         "bytes %" PRId64 " to %" PRId64
                         " of %zu bytes of data: is the file truncated?",
                         begin, end, room);
    *r = (range){ (size_t)begin, (size_t)end, json->string };
    const fac_status status = read_type(dtype->valuestring, shape, &type, &why);
    if (status == FAC_E_UNSUPPORTED)
        return fac_weights_skip(w, json->string, strlen(json->string), why.text, err);
    if (status) return fac_raise(err, status, "%s", why.text);
    const size_t bytes = fac_type_bytes(&type);
    if (bytes == SIZE_MAX || bytes != (size_t)(end - begin))
        return fac_raise(err, FAC_E_FORMAT,
                         "its shape needs another number of bytes than its %" PRId64, end - begin);
    fac_tensor *t;
    FAC_TRY(fac_tensor_from_file(file, data + (size_t)begin, type, NULL, &t, err));
    return fac_weights_add(w, json->string, strlen(json->string), t, err);
}

static int by_place(const void *a, const void *b) {
    const range *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

static fac_status check_cover(range *r, size_t n, size_t bytes, fac_error *err) {
    size_t at = 0;
    qsort(r, n, sizeof *r, by_place);
    for (size_t i = 0; i < n; i++) {
        if (r[i].begin != at)
            return fac_raise(err, FAC_E_FORMAT,
                             "%s: begins at byte %zu, the tensor before it ends at %zu", r[i].name,
                             r[i].begin, at);
        at = r[i].end;
    }
    return at == bytes
               ? FAC_OK
               : fac_raise(err, FAC_E_FORMAT, "the last %zu bytes belong to no tensor", bytes - at);
}

static fac_status read_header(const cJSON *header, fac_file *file, size_t data, fac_weights *w,
                              fac_error *err) {
    size_t n = 0;
    range *r = fac_alloc((size_t)cJSON_GetArraySize(header), sizeof *r);
    if (!r) return fac_raise_memory(err, "%d tensors", cJSON_GetArraySize(header));
    fac_status status = FAC_OK;
    const cJSON *json;
    cJSON_ArrayForEach(json, header) {
        if (!strcmp(json->string, "__metadata__")) continue;
        status = read_tensor(json, file, data, w, &r[n++], err);
        if (status) {
            fac_raise_in(err, status, "%.200s", json->string);
            break;
        }
    }
    if (!status) status = check_cover(r, n, fac_file_size(file) - data, err);
    fac_release(r);
    return status;
}

fac_status fac_safetensors_read(fac_file *file, fac_weights *w, fac_error *err) {
    const char *p = fac_file_data(file);
    size_t size = fac_file_size(file);
    uint64_t length;
    if (size < PREFIX)
        return fac_raise(err, FAC_E_FORMAT, "a .safetensors file of %zu bytes", size);
    memcpy(&length, p, PREFIX);
    if (length > LARGEST_HEADER)
        return fac_raise(err, FAC_E_FORMAT, "a .safetensors header of %" PRIu64 " bytes", length);
    if (length > size - PREFIX)
        return fac_raise(err, FAC_E_FORMAT, "a .safetensors file that ends within its header");
    cJSON *header = cJSON_ParseWithLength(p + PREFIX, (size_t)length);
    fac_status status =
        cJSON_IsObject(header)
            ? read_header(header, file, PREFIX + (size_t)length, w, err)
            : fac_raise(err, FAC_E_FORMAT, "a .safetensors header that is no JSON object");
    cJSON_Delete(header);
    return status;
}

/* ---- writing ---- */

static void quote(fac_text *to, const char *s) {
    fac_text_add(to, "\"");
    for (; *s; s++) {
        if ((unsigned char)*s < 32)
            fac_text_print(to, "\\u%04x", (unsigned)*s);
        else if (*s == '"' || *s == '\\')
            fac_text_print(to, "\\%c", *s);
        else
            fac_text_add_bytes(to, s, 1);
    }
    fac_text_add(to, "\"");
}

static const char *name_of(fac_dtype dtype) {
    for (int k = 0; k < NAMES; k++)
        if (names[k].dtype == dtype) return names[k].name;
    return NULL;
}

static int size_of(const fac_tensor *t) { return fac_dtype_get(t->type.dtype)->block_bytes; }

/* Wide elements first: then everything is aligned without gaps.  order[k] is the tensor that comes
 * k-th. */
static void place(int n, fac_tensor *const t[], int *order) {
    int k = 0;
    for (int size = 8; size; size /= 2)
        for (int i = 0; i < n; i++)
            if (size_of(t[i]) == size) order[k++] = i;
}

static fac_status header_of(int n, const char *const name[], fac_tensor *const t[],
                            const int *order, fac_text *h, fac_error *err) {
    size_t at = 0, end;
    fac_text_add_bytes(h, "\0\0\0\0\0\0\0\0{", PREFIX + 1);
    for (int k = 0; k < n; k++) {
        fac_type type = fac_tensor_type(t[order[k]]);
        if (!fac_size_add(at, fac_type_bytes(&type), &end))
            return fac_raise(err, FAC_E_NOMEM, "the tensors are too large");
        if (k) fac_text_add(h, ",");
        quote(h, name[order[k]]);
        fac_text_print(h, ":{\"dtype\":\"%s\",\"shape\":[", name_of(type.dtype));
        for (int i = 0; i < type.dims.n; i++)
            fac_text_print(h, i ? ",%" PRId64 : "%" PRId64, type.dims.d[i]);
        fac_text_print(h, "],\"data_offsets\":[%zu,%zu]}", at, end);
        at = end;
    }
    fac_text_add(h, "}");
    while (!h->failed && h->n % 64) fac_text_add(h, " ");
    if (h->failed) return fac_raise_memory(err, "a .safetensors header");
    uint64_t length = h->n - PREFIX;
    if (length > LARGEST_HEADER)
        return fac_raise(err, FAC_E_ARGUMENT, "too many tensors: a header of %" PRIu64 " bytes",
                         length);
    memcpy(h->s, &length, PREFIX);
    return FAC_OK;
}

fac_status fac_tensor_put(const fac_tensor *t, fac_writer *w, fac_error *err) {
    fac_tensor *copy = NULL;
    if (!t->contiguous || !fac_tensor_data(t)) {
        FAC_TRY(fac_tensor_copy_contiguous(t, &copy, err));
        t = copy;
    }
    fac_status status = fac_writer_put(w, fac_tensor_data(t), fac_type_bytes(&t->type), err);
    fac_tensor_free(copy);
    return status;
}

static fac_status check_names(int n, const char *const name[], fac_tensor *const t[],
                              fac_error *err) {
    fac_table seen = { 0 };
    fac_status status = FAC_OK;
    for (int i = 0; i < n && !status; i++) {
        if (!name_of(t[i]->type.dtype))
            status = fac_raise(err, FAC_E_UNSUPPORTED, "%s: .safetensors has no elements like %s",
                               name[i], fac_dtype_get(t[i]->type.dtype)->name);
        else if (fac_table_get(&seen, name[i]) || !strcmp(name[i], "__metadata__"))
            status = fac_raise(err, FAC_E_ARGUMENT, "%s: a name that is taken", name[i]);
        else if (!fac_table_put(&seen, name[i], t[i]))
            status = fac_raise_memory(err, "%d names", n);
    }
    fac_table_free(&seen);
    return status;
}

fac_status fac_safetensors_save(const char *path, int n, const char *const name[],
                                fac_tensor *const t[], fac_error *err) {
    fac_text header = { 0 };
    fac_writer *w = NULL;
    FAC_TRY(check_names(n, name, t, err));
    int *order = fac_alloc((size_t)n, sizeof *order);
    fac_status status = order ? FAC_OK : fac_raise_memory(err, "%d tensors", n);
    if (!status) {
        place(n, t, order);
        status = header_of(n, name, t, order, &header, err);
    }
    if (!status) status = fac_writer_open(path, &w, err);
    if (!status) status = fac_writer_put(w, header.s, header.n, err);
    for (int k = 0; k < n && !status; k++) status = fac_tensor_put(t[order[k]], w, err);
    if (status)
        fac_writer_cancel(w);
    else
        status = fac_writer_close(w, err);
    fac_text_free(&header);
    fac_release(order);
    return status;
}
