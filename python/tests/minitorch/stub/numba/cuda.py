"""numba.cuda: FACULA_MINITORCH_DEVICE=1 lets the tests of CudaOps run on the OpenCL device."""
import os


def is_available():
    return os.environ.get("FACULA_MINITORCH_DEVICE", "") != ""
