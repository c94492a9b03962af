#!/usr/bin/env python3
"""Draws what a command printed to a terminal (true colours, half blocks) as a PNG: terminal_png.py OUT.png < output.

Needs Pillow and the DejaVu fonts.  Used for the picture in the README:
    script -qec "make demo" /dev/null | python3 scripts/terminal_png.py docs/demo.png
"""
import re
import sys
import unicodedata
from PIL import Image, ImageDraw, ImageFont

W, H = 9, 18                                     # one cell
FONT = "/usr/share/fonts/truetype/dejavu/DejaVuSansMono%s.ttf"
BACK, FORE = (24, 24, 28), (220, 220, 220)


def colour256(n):
    if n < 16:
        base = [(0, 0, 0), (205, 49, 49), (13, 188, 121), (229, 229, 16), (36, 114, 200), (188, 63, 188), (17, 168, 205), (229, 229, 229)]
        return base[n % 8]
    if n > 231:
        return (8 + 10 * (n - 232),) * 3
    n -= 16
    return tuple(0 if v == 0 else 55 + 40 * v for v in (n // 36, n // 6 % 6, n % 6))


def cells(text):
    """Rows of (character, foreground, background, bold)."""
    rows, row, fore, back, bold = [], [], FORE, BACK, False
    text = re.sub(r"[^\n]*\r(?!\n)", "", text.replace("\r\n", "\n"))      # of a line that was written again, the last state
    for part in re.split(r"(\x1b\[[0-9;]*[A-Za-z]|\n)", text):
        if part == "\n":
            rows.append(row)
            row = []
        elif part.startswith("\x1b["):
            if part[-1] != "m":
                continue
            codes = [int(c or 0) for c in part[2:-1].split(";")]
            while codes:
                c = codes.pop(0)
                if c == 0:
                    fore, back, bold = FORE, BACK, False
                elif c == 1:
                    bold = True
                elif c in (38, 48):
                    kind = codes.pop(0)
                    value = tuple(codes.pop(0) for _ in range(3)) if kind == 2 else colour256(codes.pop(0))
                    fore, back = (value, back) if c == 38 else (fore, value)
        else:
            row += [(ch, fore, back, bold) for ch in part if unicodedata.category(ch) != "Cc"]
    return rows + ([row] if row else [])


def main():
    rows = cells(sys.stdin.read())
    image = Image.new("RGB", ((max(map(len, rows)) + 2) * W, (len(rows) + 1) * H), BACK)
    draw = ImageDraw.Draw(image)
    fonts = [ImageFont.truetype(FONT % kind, 15) for kind in ("", "-Bold")]
    for y, row in enumerate(rows):
        for x, (ch, fore, back, bold) in enumerate(row):
            left, top = (x + 1) * W, y * H + H // 2
            if back != BACK:
                draw.rectangle((left, top, left + W - 1, top + H - 1), fill=back)
            eighths = "▏▎▍▌▋▊▉█".find(ch) + 1
            if ch == "▀":
                draw.rectangle((left, top, left + W - 1, top + H // 2 - 1), fill=fore)
            elif ch == "▄":
                draw.rectangle((left, top + H // 2, left + W - 1, top + H - 1), fill=fore)
            elif eighths > 0:
                draw.rectangle((left, top + 3, left + max(W * eighths // 8, 1) - 1, top + H - 4), fill=fore)
            elif 0x2800 <= ord(ch) < 0x2900:            # braille, which the font does not have
                for bit, (dx, dy) in enumerate([(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (0, 3), (1, 3)]):
                    if ord(ch) >> bit & 1:
                        px, py = left + dx * W // 2 + 1, top + dy * H // 4 + 1
                        draw.rectangle((px, py, px + 2, py + 2), fill=fore)
            elif ch != " ":
                draw.text((left, top), ch, font=fonts[bold], fill=fore)
    image.save(sys.argv[1])


if __name__ == "__main__":
    main()
