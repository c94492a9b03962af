#!/usr/bin/env python3
"""Saved models that hear, against ONNX Runtime: python scripts/peers/check_sound.py build/facula

    pip install onnxruntime numpy

A small network, one of the zoo, and one of many mels are trained for an epoch on noises; then both programs hear the golden
signal (two tones and a chirp, half a second at 16 kHz) and silence.  Their logits may differ by 1e-5.
"""
import pathlib
import subprocess
import sys
import tempfile
import wave

import numpy as np
import onnxruntime as ort

RATE, SIZE = 16000, 8000
MODELS = {"sound-cnn": ["--mels", "64"], "zoo:resnet18": ["--mels", "64"], "sound-cnn, 40 mels": ["--mels", "40"],
          "sound-cnn:8,16,16,32, bands": ["--normalize", "bands", "--low", "500"]}


def golden():
    n = np.arange(SIZE)
    return (.5 * np.sin(2 * np.pi * 440 * n / RATE) + .25 * np.sin(2 * np.pi * 3000 * n / RATE + .7)
            + .1 * np.cos(2 * np.pi * n * n / RATE / 8)).astype("float32")


def noises(folder):
    """Three classes of four sounds, louder at the beginning, at the end, everywhere."""
    random = np.random.default_rng(0)
    for k, loud in enumerate((np.linspace(1, 0, SIZE), np.linspace(0, 1, SIZE), np.ones(SIZE))):
        (folder / f"class{k}").mkdir()
        for i in range(4):
            with wave.open(str(folder / f"class{k}" / f"{i}.wav"), "wb") as w:
                w.setnchannels(1)
                w.setsampwidth(2)
                w.setframerate(RATE)
                w.writeframes((random.standard_normal(SIZE) * loud * 4000).astype("<i2").tobytes())


def main():
    facula, wrong = sys.argv[1], 0
    signals = {"golden": golden(), "silence": np.zeros(SIZE, "float32")}
    with tempfile.TemporaryDirectory() as place:
        place = pathlib.Path(place)
        (place / "data").mkdir()
        noises(place / "data")
        for name, options in MODELS.items():
            out = place / name.replace(":", "_").replace(" ", "_")
            subprocess.run([facula, "train", "sound-folder", "--data", place / "data", "--seconds", "0.5", "--model", name.split(",")[0],
                            "--epochs", "1", "--batch", "4", "--threads", "1", "--quiet", "--out", out, *options],
                           check=True, capture_output=True)
            session = ort.InferenceSession(str(out / "model.onnx"), providers=["CPUExecutionProvider"])
            for what, x in signals.items():
                np.save(place / "x.npy", x[None])
                subprocess.run([facula, "run", out / "model.onnx", "--input", f"wave={place / 'x.npy'}",
                                "--output", f"logits={place / 'y.npy'}"], check=True, capture_output=True)
                ours, theirs = np.load(place / "y.npy"), session.run(None, {"wave": x[None]})[0]
                off = np.abs(ours - theirs).max()
                ok = off <= 1e-5
                wrong += not ok
                print(f"{'ok    ' if ok else 'FAILED'} {name}, {what}: logits up to {np.abs(theirs).max():.2f} are off by {off:.1e}")
    return 1 if wrong else 0


sys.exit(main())
