"""Stands in for numba, of which MiniTorch's tests ask only whether there is a device."""
import os


class cuda:
    @staticmethod
    def is_available():
        return os.environ.get("FACULA_MINITORCH_DEVICE", "") != ""
