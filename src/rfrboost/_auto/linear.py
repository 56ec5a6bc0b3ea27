"""Linear members of wide tables and under a time limit: the dual form, and what time allows.

With fewer rows than columns ridge regression is solved from the inner products of rows
(:func:`row_solver`), with the same solution as from sums over rows: time and memory then grow with
the square of the number of rows, and not of columns. :mod:`rfrboost._auto.layer` fits the members.
"""

from collections.abc import Callable
from time import perf_counter

import numpy as np

from rfrboost._auto.bags import Bags
from rfrboost._numerics.blas import gram, product
from rfrboost._numerics.least_squares import ridge_of_rows
from rfrboost._numerics.threads import Team
from rfrboost._typing import Array

# The most of the time that is left which linear members may take; time is taken to be left for at
# least LEAST_SECONDS, because a model without them may be no better than a constant.
LINEAR_SHARE = 0.25
LEAST_SECONDS = 0.4

# The same share where even one penalty takes longer. They may take more then, before they are
# fitted on fewer rows: a model must be no worse than a linear one.
ALL_ROWS_SHARE = 0.5

# The fewest rows that they are fitted on: this many for each column, and not below LEAST_ROWS,
# whose sums take hardly any time. With fewer they may be worse than linear models of all rows.
ROWS_PER_COLUMN = 8
LEAST_ROWS = 2048

# The shortest time, in seconds, that can be measured.
SHORTEST = 1e-6

# The ridge regressions of all members under some penalties: C (D, penalties·members·d) and c.
LinearSolver = Callable[[tuple[float, ...]], tuple[Array, Array]]


def row_solver(bags: Bags, R: Array, team: Team) -> LinearSolver:
    """Ridge regressions by the inner products of all rows, (n, n): the dual form.

    R (n, members·d) are the targets of all members.
    """
    X = bags.x[:, :-1]
    d = R.shape[1] // len(bags.members)
    K = np.empty((len(X), len(X)), order="F")

    def multiply(begin: int) -> None:
        s = slice(begin, begin + bags.sizes.kernel_strip_rows)
        product(X, X[s].T, K[:, s])

    list(team(multiply, range(0, len(X), bags.sizes.kernel_strip_rows)))

    def solve_under(penalties: tuple[float, ...]) -> tuple[Array, Array]:
        C = np.empty((X.shape[1], len(penalties), len(bags.members), d))
        c = np.empty(C.shape[1:])

        def fit(i: int) -> None:
            k = bags.members[i]
            own = slice(i * d, (i + 1) * d)
            A, of_rows = ridge_of_rows(K, bags.split(k)[0], bags.w, R[:, own], penalties)
            C[:, :, i] = product(X.T, A).reshape(len(C), len(penalties), d)
            c[:, i] = of_rows.reshape(len(penalties), d)

        list(team(fit, range(len(bags.members))))
        return C.reshape(len(C), -1), c.ravel()

    return solve_under


def affordable(
    bags: Bags, penalties: tuple[float, ...], deadline: float
) -> tuple[int, tuple[float, ...]]:
    """Every how many rows linear members are fitted on, and under which penalties.

    That is every row and all penalties if these take at most LINEAR_SHARE of the time until the
    deadline, judged by the time that the Gram matrix of some rows takes. Otherwise there are fewer
    penalties, and fewer rows if even one of them would take more than ALL_ROWS_SHARE.
    """
    n, width = bags.x.shape
    D = width - 1
    some = bags.x[: min(bags.sizes.kernel_strip_rows, n), :-1]
    began = perf_counter()
    gram(some if len(some) >= D else some.T)
    ended = perf_counter()
    rate = len(some) * D * min(len(some), D) / max(ended - began, SHORTEST)
    left = rate * max(deadline - ended, LEAST_SECONDS)
    for k in range(len(penalties), 0, -1):
        if linear_work(n, D, k * len(bags.members)) <= LINEAR_SHARE * left:
            return 1, likeliest(penalties, k, n, D)
    fewest = max(ROWS_PER_COLUMN * D, LEAST_ROWS)
    every = 1
    most = ALL_ROWS_SHARE * left
    while n // (2 * every) >= fewest and linear_work(n // every, D, len(bags.members)) > most:
        every *= 2
    return every, likeliest(penalties, 1, n, D)


def linear_work(n: int, D: int, n_solves: int) -> float:
    """Operations of the linear members: a Gram matrix and Cholesky factorisations, in the dual form
    if rows are fewer than columns."""
    small = min(n, D)
    return float(small * (n * D + n_solves * small**2 / 3))


def likeliest(penalties: tuple[float, ...], k: int, n: int, D: int) -> tuple[float, ...]:
    """The k penalties nearest to D/n by their ratio, in their order.

    That is the best one where all columns matter alike and explain half of the target's variance.
    """
    distance = np.abs(np.log(np.maximum(penalties, 1e-300)) - np.log(D / n))
    chosen = np.sort(np.argsort(distance, kind="stable")[:k])
    return tuple(penalties[i] for i in chosen)
