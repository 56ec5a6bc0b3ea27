"""Speed and memory, measured against the hardware's own limit. Run: python -m benchmarks.

Two commits of the library are compared by ``python -m benchmarks.fingerprints --against COMMIT``
(the same answers, to the bit?) and by ``python -m benchmarks.against COMMIT`` (as fast?).
"""
