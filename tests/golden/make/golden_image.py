#!/usr/bin/env python3
"""Writes tests/golden/image.h: small image files and what Pillow makes of them, for tests/data/test_image.c.

    python3 tests/golden/make/golden_image.py > tests/golden/image.h        (Pillow 13, NumPy)
"""
import io
import struct
import sys

import numpy as np
from PIL import Image, ImageOps, __version__


def pattern(width, height):
    """The same formula as pattern() in tests/data/image_check.h."""
    y, x = np.mgrid[0:height, 0:width]
    return np.stack([(x * 31 + y * 17 + x * y * 7 + c * 85) % 256 for c in range(3)], 2).astype(np.uint8)


def smooth(width, height):
    """Slow gradients: JPEG keeps them."""
    y, x = np.mgrid[0:height, 0:width]
    return np.stack([x * 255 // (width - 1), y * 255 // (height - 1), (x + y) * 9 % 256], 2).astype(np.uint8)


def saved(image, kind, **how):
    to = io.BytesIO()
    image.save(to, kind, **how)
    return to.getvalue()


def rgb(data):
    return np.array(ImageOps.exif_transpose(Image.open(io.BytesIO(data))).convert("RGB"))


def interlaced_png(image):
    """Adam7 by hand, as Pillow does not write it."""
    import zlib
    height, width = image.shape[:2]
    raw = b""
    for x0, y0, dx, dy in ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)):
        part = image[y0::dy, x0::dx]
        if part.size:
            raw += b"".join(b"\0" + row.tobytes() for row in part)

    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 1))
            + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b""))


def bmp_rle8(indices, palette):
    """Runs, single pixels, a jump and the end of rows."""
    body = b""
    for row in indices[::-1]:
        body += bytes([3, int(row[0])]) + bytes([0, 4]) + bytes(int(i) for i in row[3:7]) + b"\0\0"
    body += b"\0\1"
    height, width = indices.shape
    head = struct.pack("<IiiHHIIiiII", 40, width, height, 1, 8, 1, len(body), 0, 0, len(palette), 0)
    table = b"".join(bytes([b, g, r, 0]) for r, g, b in palette)
    at = 14 + len(head) + len(table)
    return b"BM" + struct.pack("<IHHI", at + len(body), 0, 0, at) + head + table + body


def bmp_rle4(indices, palette):
    """Two pixels in a byte: a run of alternating colours, then single pixels padded to a word."""
    body = b""
    for row in indices[::-1]:
        body += bytes([4, int(row[0]) << 4 | int(row[1])])
        body += bytes([0, 3, int(row[4]) << 4 | int(row[5]), int(row[6]) << 4]) + b"\0\0"
    body += b"\0\1"
    height, width = indices.shape
    head = struct.pack("<IiiHHIIiiII", 40, width, height, 1, 4, 2, len(body), 0, 0, len(palette), 0)
    table = b"".join(bytes([b, g, r, 0]) for r, g, b in palette)
    at = 14 + len(head) + len(table)
    return b"BM" + struct.pack("<IHHI", at + len(body), 0, 0, at) + head + table + body


def bmp_16(image, compression, masks=()):
    """5-5-5 without masks, else 5-6-5; top down."""
    r, g, b = (image[..., c].astype(int) for c in range(3))
    pixels = (r >> 3) << 11 | (g >> 2) << 5 | b >> 3 if masks else (r >> 3) << 10 | (g >> 3) << 5 | b >> 3
    height, width = pixels.shape
    rows = b"".join(row.astype("<u2").tobytes() + b"\0" * (width % 2 * 2) for row in pixels)
    head = struct.pack("<IiiHHIIiiII", 40, width, -height, 1, 16, compression, len(rows), 0, 0, 0, 0)
    head += b"".join(struct.pack("<I", m) for m in masks)
    return b"BM" + struct.pack("<IHHI", 14 + len(head) + len(rows), 0, 0, 14 + len(head)) + head + rows


def bmp_core(image):
    height, width = image.shape[:2]
    rows = b"".join(row[:, ::-1].tobytes() + b"\0" * (-3 * width % 4) for row in image[::-1])
    return b"BM" + struct.pack("<IHHI", 26 + len(rows), 0, 0, 26) + struct.pack("<IHHHH", 12, width, height, 1, 24) + rows


def files():
    image = Image.fromarray(pattern(7, 5))
    yield "png_rgb", saved(image, "PNG")
    yield "png_grey", saved(image.convert("L"), "PNG")
    yield "png_1bit", saved(image.convert("1"), "PNG")
    yield "png_palette", saved(image.quantize(11), "PNG", bits=4)
    yield "png_palette_clear", saved(image.quantize(11), "PNG", transparency=3)
    alpha = image.convert("RGBA")
    alpha.putalpha(image.convert("L"))
    yield "png_rgba", saved(alpha, "PNG")
    yield "png_grey_alpha", saved(alpha.convert("LA"), "PNG")
    yield "png_interlaced", interlaced_png(pattern(7, 5))
    exif = Image.Exif()
    exif[0x112] = 6
    yield "png_oriented", saved(image, "PNG", exif=exif)
    yield "bmp_rgb", saved(image, "BMP")
    yield "bmp_palette", saved(image.quantize(11), "BMP")
    yield "bmp_1bit", saved(image.convert("1"), "BMP")
    yield "bmp_rgba", saved(alpha, "BMP")
    indices = pattern(7, 5)[..., 0] // 3 % 5
    indices[:, 1:3] = indices[:, :1]
    palette = [(9, 8, 7), (255, 0, 1), (0, 255, 2), (3, 0, 255), (77, 66, 55)]
    yield "bmp_rle8", bmp_rle8(indices, palette)
    indices[:, 2:4] = indices[:, 0:2]
    yield "bmp_rle4", bmp_rle4(indices, palette)
    yield "bmp_555", bmp_16(pattern(7, 5), 0)
    yield "bmp_565", bmp_16(pattern(7, 5), 3, (0xf800, 0x07e0, 0x001f))
    yield "bmp_core", bmp_core(pattern(7, 5))
    yield "ppm", saved(image, "PPM")
    yield "pgm", saved(image.convert("L"), "PPM")
    yield "ppm_plain", b"P3 # a comment\n2 2\n#another\n15\n0 1 2  15 14 13\n7 8 9\n3 3 3"
    yield "pgm_plain", b"P2\n3 1\n255\n0 100 255\n"
    yield "ppm_16", b"P6 2 1 65535\n" + struct.pack(">6H", 0, 65535, 32768, 257, 12345, 54321)
    soft = Image.fromarray(smooth(16, 11))
    how = {"quality": 90, "optimize": True}
    yield "jpeg_444", saved(soft, "JPEG", subsampling=0, **how)
    yield "jpeg_420", saved(soft, "JPEG", subsampling=2, **how)
    yield "jpeg_progressive", saved(soft, "JPEG", progressive=True, **how)
    yield "jpeg_grey", saved(soft.convert("L"), "JPEG", **how)
    yield "jpeg_cmyk", saved(soft.convert("CMYK"), "JPEG", subsampling=0, **how)
    yield "jpeg_cmyk_420", saved(soft.convert("CMYK"), "JPEG", subsampling=2, **how)
    for turn in range(1, 9):
        exif[0x112] = turn
        yield f"jpeg_oriented_{turn}", saved(soft.convert("L"), "JPEG", exif=exif, quality=40, optimize=True)


RESIZES = [(9, 7, 4, 3), (9, 7, 13, 11), (9, 7, 13, 3), (9, 7, 4, 11), (5, 23, 4, 6), (23, 5, 6, 4), (40, 31, 3, 2),
           (40, 31, 7, 5), (1, 1, 3, 2), (8, 8, 8, 3), (8, 8, 3, 8), (17, 1, 5, 1), (6, 50, 5, 10), (64, 48, 11, 9)]


def array(name, data, kind="uint8_t"):
    text = ", ".join(str(int(x)) for x in data)
    lines, line = [], ""
    for word in text.split(" "):
        if len(line) + len(word) > 124:
            lines.append(line.rstrip())
            line = ""
        line += word + " "
    lines.append(line.rstrip())
    print(f"static const {kind} {name}[] = {{\n    " + "\n    ".join(lines) + "\n};")


def main():
    print("/* Small images and what Pillow makes of them.  Made by tests/golden/make/golden_image.py "
          f"with Pillow {__version__}: do not edit. */")
    print("#include <stddef.h>\n#include <stdint.h>\n")
    table = []
    for name, data in files():
        pixels = rgb(data)
        array(name, data)
        array(name + "_rgb", pixels.ravel())
        table.append((name, pixels.shape[1], pixels.shape[0]))
    print("\nstatic const struct golden_file {\n    const char *name;\n    const uint8_t *data;\n    size_t bytes;\n"
          "    int width, height;\n    const uint8_t *rgb;\n} golden_files[] = {")
    for name, width, height in table:
        print(f'    {{ "{name}", {name}, sizeof {name}, {width}, {height}, {name}_rgb }},')
    print("};\n")
    methods = (("FAC_NEAREST", Image.Resampling.NEAREST), ("FAC_BILINEAR", Image.Resampling.BILINEAR),
               ("FAC_BICUBIC", Image.Resampling.BICUBIC))
    rows = []
    for w, h, to_w, to_h in RESIZES:
        for label, method in methods:
            name = f"resize_{w}x{h}_{to_w}x{to_h}_{label[4:].lower()}"
            array(name, np.array(Image.fromarray(pattern(w, h)).resize((to_w, to_h), method)).ravel())
            rows.append(f"    {{ {w}, {h}, {to_w}, {to_h}, {label}, {name} }},")
    print("\nstatic const struct golden_resize {\n    int from_width, from_height, width, height, how;\n"
          "    const uint8_t *rgb;\n} golden_resizes[] = {")
    print("\n".join(rows))
    print("};")


if __name__ == "__main__":
    sys.exit(main())
