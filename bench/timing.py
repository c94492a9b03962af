"""How long a rival's call takes."""
import statistics
import time


def rival_ms(call, seconds):
    """Median of at least three calls, after one that warms up, in milliseconds."""
    call()
    times, end = [], time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times)
