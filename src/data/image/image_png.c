/* PNG through libpng.  Every kind ends as 8-bit RGB: palettes and 1, 2, 4 bit grey are expanded, 16
 * bit is rounded to 8, alpha is dropped (not composed), gamma is left alone: as the classifiers'
 * training pipelines (Pillow) saw their photos. */
#include "base/error.h"
#include "data/image/image_internal.h"

#ifndef FAC_HAVE_PNG

fac_status fac_png_decode(const fac_image_file *file, fac_image *image, fac_error *err) {
    (void)image;
    return fac_raise(err, FAC_E_UNSUPPORTED,
                     "%s: this build reads no PNG: install libpng-dev and build again", file->name);
}

fac_status fac_png_save(const fac_image *image, const char *path, fac_error *err) {
    (void)image;
    return fac_raise(err, FAC_E_UNSUPPORTED,
                     "%s: this build writes no PNG: install libpng-dev and build again", path);
}

fac_status fac_png_encode(const fac_image *image,
                          bool (*put)(void *self, const void *data, size_t bytes), void *self,
                          fac_error *err) {
    (void)image;
    (void)put;
    (void)self;
    return fac_raise(err, FAC_E_UNSUPPORTED,
                     "this build writes no PNG: install libpng-dev and build again");
}

#else

#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include "base/file/file.h"
#include "base/memory.h"

/* libpng reports by longjmp.  All that is needed after a jump lives in this struct, none of it in
 * locals of the function that called setjmp, so no value can be lost in a register. */
typedef struct png_job {
    png_structp png;
    png_infop info;
    fac_error error; /* of a jump */
    const char *name;
    const fac_image_file *file; /* reading */
    size_t at;
    fac_image *image;
    bool (*put)(void *self, const void *data, size_t bytes); /* writing */
    void *self;
    const fac_image *from;
} png_job;

static void on_error(png_structp png, png_const_charp text) {
    png_job *job = png_get_error_ptr(png);
    if (!job->error.status) fac_raise(&job->error, FAC_E_FORMAT, "%s: PNG: %s", job->name, text);
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp text) {
    (void)png;
    (void)text;
}

/* A NULL from here is an error of libpng; remembering it first gives that error its proper status.
 */
static png_voidp on_malloc(png_structp png, png_alloc_size_t bytes) {
    void *p = fac_alloc(1, bytes);
    png_job *job = png_get_mem_ptr(png);
    if (!p && job && !job->error.status)
        fac_raise(&job->error, FAC_E_NOMEM, "%s: PNG: no memory for %zu bytes", job->name,
                  (size_t)bytes);
    return p;
}

static void on_free(png_structp png, png_voidp p) {
    (void)png;
    fac_release(p);
}

static fac_status finish(png_job *job, fac_status status, fac_error *err) {
    if (!status) return FAC_OK;
    if (job->error.status && err) *err = job->error;
    return job->error.status ? job->error.status : status;
}

/* ---- reading ---- */

static void read_bytes(png_structp png, png_bytep to, size_t n) {
    png_job *job = png_get_io_ptr(png);
    if (n > job->file->bytes - job->at) png_error(png, "the file ends in the middle");
    memcpy(to, job->file->data + job->at, n);
    job->at += n;
}

static int orientation(const png_job *job) {
#ifdef PNG_eXIf_SUPPORTED
    png_uint_32 bytes = 0;
    png_bytep exif = NULL;
    if (png_get_eXIf_1(job->png, job->info, &bytes, &exif) && exif)
        return fac_exif_orientation(exif, bytes);
#endif
    (void)job;
    return 1;
}

/* Everything that may jump.  Deflate makes at most 1032 bytes of one. */
static fac_status read_all(png_job *job, fac_error *err) {
    enum { DEFLATE = 1032 };
    if (setjmp(png_jmpbuf(job->png))) return FAC_E_FORMAT;
    png_structp png = job->png;
    png_set_read_fn(png, job, read_bytes);
    png_set_user_limits(png, FAC_PIXELS, FAC_PIXELS);
    png_set_chunk_malloc_max(png, 1 << 24);
    png_read_info(png, job->info);
    int bits = png_get_bit_depth(png, job->info) * png_get_channels(png, job->info);
    FAC_TRY(fac_image_new_in(job->file, png_get_image_width(png, job->info),
                             png_get_image_height(png, job->info), DEFLATE * 8 / bits + 1,
                             job->image, err));
    png_set_expand(png);
    png_set_scale_16(png);
    png_set_gray_to_rgb(png);
    png_set_strip_alpha(png);
    int passes = png_set_interlace_handling(png);
    png_read_update_info(png, job->info);
    size_t row = 3 * (size_t)job->image->width;
    if (png_get_rowbytes(png, job->info) != row) png_error(png, "does not become 8-bit RGB");
    for (int pass = 0; pass < passes; pass++)
        for (int y = 0; y < job->image->height; y++)
            png_read_row(png, job->image->rgb + (size_t)y * row, NULL);
    png_read_end(png, job->info);
    return fac_image_orient(job->image, orientation(job), job->name, err);
}

fac_status fac_png_decode(const fac_image_file *file, fac_image *image, fac_error *err) {
    png_job job = { .name = file->name, .file = file, .image = image };
    job.png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, &job, on_error, on_warning, &job,
                                       on_malloc, on_free);
    job.info = job.png ? png_create_info_struct(job.png) : NULL;
    fac_status status =
        job.info ? read_all(&job, err)
                 : fac_raise(err, FAC_E_NOMEM, "%s: PNG: no memory for a decoder", file->name);
    png_destroy_read_struct(&job.png, &job.info, NULL);
    return finish(&job, status, err);
}

/* ---- writing ---- */

static void write_bytes(png_structp png, png_bytep from, size_t n) {
    png_job *job = png_get_io_ptr(png);
    if (!job->put(job->self, from, n)) png_error(png, "cannot write");
}

static void flush_nothing(png_structp png) { (void)png; }

static fac_status write_all(png_job *job) {
    if (setjmp(png_jmpbuf(job->png))) return FAC_E_IO;
    png_structp png = job->png;
    size_t width = (size_t)job->from->width;
    png_set_write_fn(png, job, write_bytes, flush_nothing);
    png_set_user_limits(png, FAC_PIXELS, FAC_PIXELS);
    png_set_IHDR(png, job->info, (png_uint_32)width, (png_uint_32)job->from->height, 8,
                 PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png, job->info);
    for (int y = 0; y < job->from->height; y++)
        png_write_row(png, job->from->rgb + (size_t)y * 3 * width);
    png_write_end(png, job->info);
    return FAC_OK;
}

static fac_status encode(png_job *job, fac_error *err) {
    job->png = png_create_write_struct_2(PNG_LIBPNG_VER_STRING, job, on_error, on_warning, job,
                                         on_malloc, on_free);
    job->info = job->png ? png_create_info_struct(job->png) : NULL;
    fac_status status =
        job->info ? write_all(job)
                  : fac_raise(err, FAC_E_NOMEM, "%s: PNG: no memory for an encoder", job->name);
    png_destroy_write_struct(&job->png, &job->info);
    return status;
}

fac_status fac_png_encode(const fac_image *image,
                          bool (*put)(void *self, const void *data, size_t bytes), void *self,
                          fac_error *err) {
    png_job job = { .name = "image", .from = image, .put = put, .self = self };
    return finish(&job, encode(&job, err), err);
}

typedef struct png_file {
    fac_writer *writer;
    fac_error error;
} png_file;

static bool put_file(void *self, const void *data, size_t bytes) {
    png_file *f = self;
    return !fac_writer_put(f->writer, data, bytes, &f->error);
}

fac_status fac_png_save(const fac_image *image, const char *path, fac_error *err) {
    png_file file = { 0 };
    png_job job = { .name = path, .from = image, .put = put_file, .self = &file };
    FAC_TRY(fac_writer_open(path, &file.writer, err));
    fac_status status = encode(&job, err);
    if (status) {
        fac_writer_cancel(file.writer);
        if (file.error.status)
            job.error = file.error; /* why the writer refused says more than that it did */
        return finish(&job, file.error.status ? file.error.status : status, err);
    }
    return fac_writer_close(file.writer, err);
}

#endif
