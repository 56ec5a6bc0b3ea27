"""Whether two commits of the library answer alike, to the bit.

Run: python -m benchmarks.fingerprints --against COMMIT
"""
