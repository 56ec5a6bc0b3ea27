"""Two pictures of the library, made from its source: ``python tools/architecture.py``.

``docs/packages.svg`` has the packages and the imports between them, read from the source tree.
``docs/routes.svg`` has the two routes of a fit, and the way to the second of rows that are not in
memory: the steps in ``ROUTES``, which name functions of
the library. A test fits a model by each route and checks that it calls them in this order.
Both files are committed; another test says when they are out of date.
"""

import ast
import html
import itertools
import textwrap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "rfrboost"
PICTURES = ROOT / "docs"

#: imported nearly everywhere, so that arrows to them would say nothing
EVERYWHERE = {"_typing", "_version"}
#: scripts that only call the command line
SCRIPTS = {"__main__"}


@dataclass(frozen=True)
class Step:
    """A step of a fit: what happens, and the function that does it, below ``rfrboost``."""

    label: str
    function: str
    #: whether the step is repeated for every layer
    per_layer: bool = False


LAYER = (
    Step("draw random features f", "_paper.boost.sample_features", per_layer=True),
    Step("fit the matrix A to the gradient", "_paper.steps.GradientStep.fit", per_layer=True),
    Step("refit the head W", "_paper.heads.fit_head", per_layer=True),
)
READ = Step("check X, y and weights", "_estimators.problem.problem_of_arrays")
ROUTES = {
    "Single network": (
        READ,
        Step("settle the parameters", "_estimators.routes.fit_single"),
        *LAYER,
    ),
    "Ensemble": (
        READ,
        Step("encode the table", "_tables.fit.fit_encoder"),
        Step("settle the parameters", "_estimators.routes.fit_ensemble"),
        Step("cut rows into folds and bags", "_auto.bags.bag"),
        Step("fit linear, then tree members", "_auto.trees.fit_trees"),
        Step("fit boosted members", "_auto.members.boost_members"),
        Step("fit kernel members", "_auto.kernel.fit_kernel"),
        Step("weight families by held-out rows", "_auto.assemble.stack"),
        Step("make one network of them", "_auto.assemble.boosted_layers"),
    ),
    "Ensemble, rows outside memory": (
        Step("look at a sample of the rows", "_blocks.sample.BlockSample.__init__"),
        Step("fit an encoder to the sample", "_tables.fit.fit_encoder"),
        Step("encode block by block, into a table", "_blocks.table.encoded_table"),
        Step("check y and weights", "_estimators.outside.problem_of_table"),
        Step("as for rows in memory", "_estimators.routes.fit_ensemble"),
    ),
}
WHEN = {
    "Single network": "n_layers is a number",
    "Ensemble": 'n_layers="auto", the default',
    "Ensemble, rows outside memory": "RowBlocks or Dask, > 131,072 rows",
}

INK, FAINT, LINE, PAPER = "#1f2933", "#52606d", "#7b8794", "#ffffff"
#: fill of a package: private ones by how near they are to the user, public ones apart
PRIVATE_FILL, PUBLIC_FILL = "#eef4f8", "#fdf1e3"
STROKE = "#9fb3c8"
SANS = "font-family=\"Helvetica, Arial, 'DejaVu Sans', sans-serif\""
MONO = "font-family=\"'DejaVu Sans Mono', Menlo, Consolas, monospace\""


# --- reading the source tree ---------------------------------------------------------------------


def packages() -> list[str]:
    """The packages, and the modules of the top folder; ``__init__`` is the library itself."""
    folders = [p.parent.name for p in PACKAGE.glob("*/__init__.py")]
    modules = [p.stem for p in PACKAGE.glob("*.py")]
    return sorted(set(folders + modules) - EVERYWHERE - SCRIPTS)


def source_of(package: str) -> Path:
    """The file with the docstring of a package or module."""
    folder = PACKAGE / package
    return folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")


def modules_of(package: str) -> list[Path]:
    """The files of a package, or the one file of a module."""
    folder = PACKAGE / package
    return sorted(folder.rglob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]


def purpose(package: str) -> str:
    """The first sentence of its docstring."""
    doc = ast.get_docstring(ast.parse(source_of(package).read_text(encoding="utf-8"))) or ""
    return " ".join(doc.split("\n\n")[0].split()).rstrip(".").replace("``", "")


def imported(nodes: Iterable[ast.AST], names: set[str]) -> set[str]:
    """The packages that some statements import."""
    found = []
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module:
            found += [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
    below = [name.split(".")[1:] for name in found if name.split(".")[0] == "rfrboost"]
    return {parts[0] if parts and parts[0] in names else "__init__" for parts in below}


def top_statements(tree: ast.Module) -> Iterator[ast.AST]:
    """The statements outside functions, also those for type checkers, by which names are public."""
    for node in tree.body:
        yield from node.body if isinstance(node, ast.If) else [node]


def import_graph() -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """What every package imports at the top of its modules, and what only inside functions."""
    names = set(packages()) | EVERYWHERE
    at_top: dict[str, set[str]] = {}
    inside: dict[str, set[str]] = {}
    for package in packages():
        at_top[package] = set()
        inside[package] = set()
        for path in modules_of(package):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            at_top[package] |= imported(top_statements(tree), names)
            inside[package] |= imported(ast.walk(tree), names)
        at_top[package] -= {package, *EVERYWHERE}
        inside[package] -= {package, *EVERYWHERE} | at_top[package]
    return at_top, inside


def import_order(at_top: dict[str, set[str]]) -> list[str]:
    """Packages such that each imports only those before it, as far as imports go one way."""
    order: list[str] = []
    left = set(at_top)
    while left:
        following = min(left, key=lambda name: (len(at_top[name] & left), name))
        order.append(following)
        left.remove(following)
    return order


def reduced(edges: dict[str, set[str]]) -> dict[str, set[str]]:
    """The edges that no other path of edges implies."""
    reached: dict[str, set[str]] = {}
    for name in import_order(edges):
        reached[name] = set(edges[name]).union(*(reached.get(k, set()) for k in edges[name]))
    return {
        name: {k for k in below if not any(k in reached.get(j, set()) for j in below - {k})}
        for name, below in edges.items()
    }


# --- the picture of the packages -----------------------------------------------------------------


@dataclass
class Place:
    """A box of the picture, or a point that a long arrow passes through; x is its middle."""

    name: str
    layer: int
    width: float
    x: float = 0.0


WIDTH = 1060
BOX_WIDTH, BOX_HEIGHT = 230, 90
LAYER_HEIGHT = BOX_HEIGHT + 44


def layered(edges: dict[str, set[str]]) -> dict[str, int]:
    """For every package the length of the longest chain of imports below it."""
    level: dict[str, int] = {}
    for name in import_order(edges):
        level[name] = 1 + max((level[k] for k in edges[name] if k in level), default=-1)
    # Public packages stand as high as they can: at the top, or right below what imports them.
    highest = max(level.values())
    for name in [name for name in reversed(import_order(edges)) if is_public(name)]:
        users = [level[other] for other in edges if name in edges[other]]
        level[name] = min([highest, *(user - 1 for user in users)])
    return level


def is_public(package: str) -> bool:
    """Whether users import it: its name has no underscore, or it is the library itself."""
    return not package.startswith("_") or package == "__init__"


def routed(
    edges: dict[str, set[str]], level: dict[str, int]
) -> tuple[list[Place], list[list[str]]]:
    """Boxes and points, and every arrow as the names it passes through."""
    places = [Place(name, layer, BOX_WIDTH) for name, layer in level.items()]
    arrows = []
    for name, below in sorted(edges.items()):
        for other in sorted(below):
            between = range(level[name] - 1, level[other], -1)
            points = [f"{name}>{other}@{layer}" for layer in between]
            places += [
                Place(point, layer, 14) for point, layer in zip(points, between, strict=True)
            ]
            arrows.append([name, *points, other])
    return places, arrows


def arrange(places: list[Place], arrows: list[list[str]]) -> None:
    """Set x: the order in every layer that bends arrows least, found by trying them in turn."""
    layers = [[p for p in places if p.layer == k] for k in range(1 + max(p.layer for p in places))]
    links = [pair for arrow in arrows for pair in itertools.pairwise(arrow)]
    by_name = {place.name: place for place in places}
    neighbours: dict[str, list[Place]] = {place.name: [] for place in places}
    for upper, lower in links:
        neighbours[upper].append(by_name[lower])
        neighbours[lower].append(by_name[upper])
    for layer in layers:
        spread(layer)
    for _ in range(6):
        for layer in [*layers, *reversed(layers)]:
            best = min(itertools.permutations(layer), key=lambda order: bend(order, neighbours))
            spread(list(best))


def spread(layer: list[Place]) -> None:
    """Put a layer's places side by side, in the middle of the picture."""
    free = WIDTH - 40 - sum(place.width for place in layer)
    gap = min(70.0, free / len(layer))
    x = (WIDTH - sum(place.width for place in layer) - gap * (len(layer) - 1)) / 2
    for place in layer:
        place.x = x + place.width / 2
        x += place.width + gap


def bend(order: tuple[Place, ...], neighbours: dict[str, list[Place]]) -> float:
    """How far arrows run sideways, and how often they cross, with a layer in this order."""
    spread(list(order))
    sideways = sum(abs(p.x - q.x) for p in order for q in neighbours[p.name])
    crossings = 0
    for p, q in itertools.combinations(order, 2):
        for a in neighbours[p.name]:
            crossings += sum(a.layer == b.layer and a.x > b.x for b in neighbours[q.name])
    return sideways + 200 * crossings


def packages_svg() -> str:
    """The packages in layers, each above what it imports."""
    at_top, inside = import_graph()
    order = import_order(at_top)
    forward = {
        name: {k for k in at_top[name] if order.index(k) < order.index(name)} for name in order
    }
    edges = reduced(forward)
    level = layered(edges)
    places, arrows = routed(edges, level)
    arrange(places, arrows)
    height = 50 + LAYER_HEIGHT * (1 + max(level.values()))
    by_name = {place.name: place for place in places}

    def top(place: Place) -> float:
        return height - 80 - LAYER_HEIGHT * place.layer - BOX_HEIGHT

    drawn = [arrow_svg([by_name[name] for name in arrow], top) for arrow in arrows]
    later = [(a, b) for a in order for b in sorted(inside[a]) if b in by_name]
    drawn += [later_svg(by_name[a], by_name[b], top) for a, b in later]
    drawn += [box_svg(by_name[name], top(by_name[name])) for name in order]
    notes = ["An arrow points to what is imported; imports that follow from others are left out."]
    if later:
        notes.append("Dashed: imported inside functions, when they are called.")
    against = [f"{a} → {b}" for a in order for b in sorted(at_top[a] - forward[a])]
    if against:
        notes.append(f"Against the order: {', '.join(against)}.")
    for i, note in enumerate(notes):
        drawn.append(text(WIDTH / 2, height - 54 + 18 * i, note, 13, FAINT))
    label = "The packages of rfrboost and the imports between them"
    return svg(WIDTH, height, label, drawn)


def arrow_svg(path: list[Place], top: Callable[[Place], float]) -> str:
    """An arrow from the bottom of the first box to the top of the last."""
    first, last = path[0], path[-1]
    x = first.x + side(path[1].x - first.x)
    y = top(first) + BOX_HEIGHT
    parts = [f"M {x:.0f} {y:.0f}"]
    for place in path[1:]:
        ends = place is last
        new_x = place.x + (side(x - place.x) if ends else 0)
        new_y = top(place) - (5 if ends else 0)
        middle = (y + new_y) / 2
        parts.append(f"C {x:.0f} {middle:.0f} {new_x:.0f} {middle:.0f} {new_x:.0f} {new_y:.0f}")
        x, y = new_x, new_y
        if not ends:
            y += BOX_HEIGHT
            parts.append(f"L {x:.0f} {y:.0f}")
    return path_svg(" ".join(parts), tip=True)


def side(distance: float) -> float:
    """Where on a box's edge an arrow begins or ends: towards where it comes from."""
    return max(-70.0, min(70.0, 0.35 * distance))


def later_svg(importer: Place, other: Place, top: Callable[[Place], float]) -> str:
    """A dashed arrow from the side of one box to that of another."""
    right = other.x >= importer.x
    x = importer.x + (BOX_WIDTH / 2 if right else -BOX_WIDTH / 2)
    y = top(importer) + 0.3 * BOX_HEIGHT
    to_y = top(other) + (BOX_HEIGHT + 5 if other.layer > importer.layer else -5)
    to_x = other.x + (-60 if right else 60)
    path = f"M {x:.0f} {y:.0f} C {to_x:.0f} {y:.0f} {to_x:.0f} {y:.0f} {to_x:.0f} {to_y:.0f}"
    return path_svg(path, tip=True, dashed=True)


def box_svg(place: Place, y: float) -> str:
    """A package: its name, what it is for, and how many modules it has."""
    name = "rfrboost" if place.name == "__init__" else place.name
    modules = [p for p in modules_of(place.name) if p.name != "__init__.py"]
    count = f"{len(modules)} modules" if len(modules) > 1 else ""
    x = place.x - BOX_WIDTH / 2
    lines = textwrap.wrap(
        purpose(place.name), 33, max_lines=4, placeholder=" …", break_on_hyphens=False
    )
    parts = [
        rectangle(
            x, y, BOX_WIDTH, BOX_HEIGHT, PUBLIC_FILL if is_public(place.name) else PRIVATE_FILL
        ),
        text(x + 10, y + 20, name, 13.5, INK, anchor="start", font=MONO, bold=True),
        text(x + BOX_WIDTH - 10, y + 20, count, 11, FAINT, anchor="end"),
    ]
    for i, line in enumerate(lines):
        parts.append(text(x + 10, y + 38 + 14 * i, line, 11, FAINT, anchor="start"))
    return "\n".join(parts)


# --- the picture of the routes -------------------------------------------------------------------

COLUMN, STEP_HEIGHT, STEP_GAP = 290, 46, 12


def routes_svg() -> str:
    """The routes side by side, from ``fit`` at the top to the fitted network at the bottom."""
    width = 3 * COLUMN + 50
    longest = max(len(steps) for steps in ROUTES.values())
    bottom = 150 + longest * (STEP_HEIGHT + STEP_GAP)
    drawn = [
        rectangle(width / 2 - 190, 14, 380, 40, PUBLIC_FILL),
        text(width / 2, 39, "fit(X, y), fit(RowBlocks) or Dask collections", 14, INK, bold=True),
        rectangle(25, bottom + 34, width - 50, 40, PUBLIC_FILL),
        text(width / 2, bottom + 59, "a fitted Network: predict, save, export", 14, INK, bold=True),
    ]
    for i, (name, steps) in enumerate(ROUTES.items()):
        x = 25 + i * COLUMN + 8
        drawn.append(column_svg(x, COLUMN - 16, name, steps, width / 2, bottom))
    return svg(width, bottom + 90, "The two routes of a fit", drawn)


def column_svg(
    x: float, width: float, name: str, steps: tuple[Step, ...], from_x: float, bottom: float
) -> str:
    """One route: its name, when it is taken, its steps, and a bracket around those of a layer."""
    middle = x + width / 2
    parts = [
        line_svg([(from_x, 54), (from_x, 66), (middle, 66), (middle, 78)], tip=True),
        text(middle, 100, name, 15, INK, bold=True),
        text(middle, 118, WHEN[name], 12, FAINT),
    ]
    y = 134.0
    for i, step in enumerate(steps):
        if i:
            parts.append(line_svg([(middle, y - STEP_GAP), (middle, y - 3)], tip=True))
        parts += [
            rectangle(x + 14, y, width - 28, STEP_HEIGHT, PRIVATE_FILL),
            text(middle, y + 19, step.label, 12.5, INK),
            text(
                middle,
                y + 36,
                step.function.replace(".__init__", "").replace(".__call__", ""),
                10,
                FAINT,
                font=MONO,
            ),
        ]
        y += STEP_HEIGHT + STEP_GAP
    repeated = [i for i, step in enumerate(steps) if step.per_layer]
    if repeated:
        first = 134 + repeated[0] * (STEP_HEIGHT + STEP_GAP) + STEP_HEIGHT / 2
        last = 134 + repeated[-1] * (STEP_HEIGHT + STEP_GAP) + STEP_HEIGHT / 2
        edge = x + width - 14
        parts.append(
            line_svg(
                [(edge, last), (edge + 12, last), (edge + 12, first), (edge + 3, first)], tip=True
            )
        )
        turned = f'transform="rotate(-90 {edge + 22:.0f} {(first + last) / 2:.0f})"'
        parts.append(text(edge + 22, (first + last) / 2, "for every layer", 11, FAINT, more=turned))
    parts.append(line_svg([(middle, y - STEP_GAP), (middle, bottom + 29)], tip=True))
    return "\n".join(parts)


# --- SVG -----------------------------------------------------------------------------------------


def svg(width: float, height: float, label: str, parts: list[str]) -> str:
    """A whole picture on white, which stays readable on dark pages."""
    tip = (
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto-start-reverse">'
        f'<path d="M 0 0 L 8 4 L 0 8 z" fill="{LINE}"/></marker></defs>'
    )
    size = f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{label}">'
    paper = f'<rect width="{width:.0f}" height="{height:.0f}" fill="{PAPER}"/>'
    return "\n".join([head, tip, paper, *parts, "</svg>", ""])


def rectangle(x: float, y: float, width: float, height: float, fill: str) -> str:
    """A box with round corners."""
    place = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="7"'
    return f'<rect {place} fill="{fill}" stroke="{STROKE}"/>'


def text(
    x: float,
    y: float,
    words: str,
    size: float,
    colour: str,
    anchor: str = "middle",
    font: str = SANS,
    bold: bool = False,
    more: str = "",
) -> str:
    """A line of text; x is its beginning, middle or end, as ``anchor`` says."""
    weight = ' font-weight="bold"' if bold else ""
    look = f'font-size="{size}" fill="{colour}" text-anchor="{anchor}" {font}{weight} {more}'
    return f'<text x="{x:.1f}" y="{y:.1f}" {look.strip()}>{html.escape(words)}</text>'


def line_svg(points: list[tuple[float, float]], tip: bool = False) -> str:
    """A line through points, with a tip at its end or without."""
    return path_svg("M " + " L ".join(f"{x:.1f} {y:.1f}" for x, y in points), tip)


def path_svg(path: str, tip: bool = False, dashed: bool = False) -> str:
    """A line along an SVG path."""
    dashes = ' stroke-dasharray="5 4"' if dashed else ""
    end = ' marker-end="url(#tip)"' if tip else ""
    return f'<path d="{path}" fill="none" stroke="{LINE}" stroke-width="1.5"{dashes}{end}/>'


def pictures() -> dict[str, str]:
    """The pictures by the name of their file."""
    return {"packages.svg": packages_svg(), "routes.svg": routes_svg()}


if __name__ == "__main__":
    for name, picture in pictures().items():
        (PICTURES / name).write_text(picture, encoding="utf-8")
        print(f"docs/{name}")
