"""Which models a script is asked to look at."""
import os


def all_models(paths):
    """Files as they are named, and every .onnx file below the folders."""
    for path in paths:
        if os.path.isfile(path):
            yield path
        for folder, _, files in os.walk(path):
            yield from (os.path.join(folder, f) for f in files if f.endswith(".onnx"))
