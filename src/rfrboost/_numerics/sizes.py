"""Numbers of rows: how many are taken at a time, and at which number a fit changes its method.

:class:`Sizes` is handed down from the estimators to everything that needs one of its numbers, so
that a test can fit a few rows by the method for many rows. Changing ``chunk_rows`` or
``batch_rows`` changes models by rounding errors only.
"""

from dataclasses import dataclass

# The largest absolute value of an input: products of two of its squares stay finite in float64.
LARGEST_INPUT = 1e60


@dataclass(frozen=True)
class Sizes:
    """Numbers of rows, bytes or matrix entries; the defaults were chosen by timing fits."""

    #: rows whose features are computed at a time: 4,096 × 1,024 float32 features are 16 MB, few
    #: enough for a processor's cache to help and many enough for a fast matrix product
    batch_rows: int = 4096
    #: rows of a chunk, over which sums are taken; the unit that is streamed from disk or sent to a
    #: Dask worker
    chunk_rows: int = 65_536
    #: bytes of features kept between the two passes of a layer over the rows; the features of
    #: batches beyond that are computed twice
    cached_bytes: int = 2**29
    #: bytes of random features that a family of an ensemble may keep in all its layers; with
    #: thousands of columns it has fewer layers
    layer_bytes: int = 2**28
    #: numbers in the rows that the features of one layer are drawn from; with thousands of columns
    #: fewer rows are drawn
    drawn_entries: int = 2**23
    #: numbers in the input gradients that a metric is learned from; with thousands of columns or
    #: hundreds of outputs they are taken at fewer rows
    gradient_entries: int = 2**22
    #: rows times features from which on a Gram matrix in single precision saves enough time
    single_precision_entries: int = 2**20
    #: bins that rows are sorted into by their first key when rows are drawn from several chunks
    draw_bins: int = 2**16
    #: rows that are sorted at a time when rows are drawn, which bounds the memory of a draw
    sorted_rows: int = 2**21
    #: rows times entries of the head up to which a convex head is solved to full precision
    exact_head_entries: int = 2**16
    #: most iterations of L-BFGS for a convex head
    head_iterations: int = 300
    #: rows from which on members share their draws of random features; with fewer rows, the target
    #: of a held-out row would influence the features that are tested on that row
    shared_draw_rows: int = 2000
    #: rows up to which every row is the centre of a bump
    most_centres: int = 5000
    #: centres that are drawn if there are more rows than that and they are not split into leaves
    drawn_centres: int = 2500
    #: rows of a kernel matrix that one thread computes at a time
    kernel_strip_rows: int = 512
    #: held-out rows of every member that a leaf needs, because its settings are chosen by them
    leaf_held_out_rows: int = 50
    #: rows that linear, boosted and tree members are fitted on; more are sampled, and only kernel
    #: members are fitted on all of them
    boosted_rows: int = 100_000
    #: rows that an encoder is fitted to: of more rows, evenly spaced ones
    sampled_rows: int = 2**17
    #: bytes of an encoded table, streamed from blocks or partitions, up to which it is kept in
    #: memory; a larger one is in a temporary file
    table_bytes: int = 2**31


#: the sizes that every estimator uses
SIZES = Sizes()
#: rows taken at a time by functions whose results do not depend on it, and so take no Sizes
BATCH_ROWS = SIZES.batch_rows
