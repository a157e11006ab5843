"""Random worlds: a table, a policy and a way to run it, each drawn from one number so that every case can be repeated.

The generator is `random.Random(seed)` and nothing else: a failure is named by its seed alone.
"""

from __future__ import annotations

import datetime
import random
from dataclasses import dataclass, field
from typing import Any

from tests.fuzz.asks import classic_requirements, decoy_requirements, labelled, method_options, term_requirements
from tests.fuzz.texts import is_missing, text

ODD_TEXTS = (
    "Ångström", "日本語", "عربى", "😀 grin", "e\u0301te", "été", "a b", "x,y", 'q"uote', "semi;colon", "pipe|d",
    "tab\tin", "new\nline", "cr\rin", "=1+1", "+plus", "-minus", "@at", "'apo", "''two", "\tlead", "(other)",
    "(missing)", "*", "true", "null", "nan", "None", "0", "01", "1e5", "[0, 1)", "{a, b}", "{", "\u200bzero",
    "\ufefffeff", "trail ", " lead", "-5", "＝fw", "\u2028sep", "=cmd()|'/c calc'!A0", "\\back", "%s", "<b>", "../up",
)  # fmt: skip
TYPED = ("parquet", "arrow", "polars", "pandas", "pyarrow")
SOURCES = ("csv", "csv", "csv.gz", *TYPED)
CLASS_METHODS = (
    "sweep", "mondrian", "incognito", "hilbert", "three-phase", "anatomy", "rating", "local-suppression", "suppress",
    "auto",
)  # fmt: skip


@dataclass
class World:
    """One case: the holder's table, what is asked, and how it is run."""

    seed: int
    columns: dict[str, list[Any]]
    attributes: dict[str, dict[str, Any]]
    require: list[dict[str, Any]]
    method: dict[str, Any]
    files: dict[str, str] = field(default_factory=dict)
    data: dict[str, Any] = field(default_factory=dict)
    source: str = "csv"
    separator: str = ","
    file_format: str = "parquet"
    saved: bool = False
    memoised: bool = False
    through_toml: bool = False
    dependence: float = 1.0
    """The largest share of people whom another column may give away."""
    knowledge: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    """Pairs of label and term by set-valued column."""
    priors: dict[str, dict[str, float]] = field(default_factory=dict)
    person: str = ""
    """The column that says whose rows are whose, if people have several."""
    curve: bool = False
    """Whether quasi-identifiers are numbers on a curve that anybody can draw."""
    twins: bool = False
    """Whether two values of a column look the same."""
    weights: dict[str, dict[str, float]] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        return len(next(iter(self.columns.values())))

    @property
    def ignores(self) -> bool:
        """Whether the policy publishes what replays of the method disclose."""
        return bool(self.seed % 4)

    @property
    def tag(self) -> str:
        return str(self.method["name"])


def make_world(seed: int) -> World:
    """The case of this number."""
    r = random.Random(seed)
    n = r.choice((1, 2, 3, 5, 8) if r.random() < 0.08 else (13, 20, 30, 45, 60, 60, 90, 120, 250))
    decoys = r.random() < 0.3
    method = "decoys" if decoys else r.choice(CLASS_METHODS)
    world = World(seed, {}, {}, [], {"name": method})
    world.source = r.choice(SOURCES)
    world.separator = r.choice(",,;\t|")
    world.file_format = r.choice(("parquet", "csv"))
    world.saved = r.random() < 0.3
    if r.random() < 0.7:
        world.columns["row"] = list(range(n))
        world.attributes["row"] = {"role": "plain"}
        if r.random() < 0.1:
            world.attributes["row"] = {"role": "identifier"}
    if r.random() < 0.7:
        name = r.choice(("name", "=id", "ssn nummer"))
        world.columns[name] = [f"Qz{r.getrandbits(40):010x}" for _ in range(n)]
        world.attributes[name] = {"role": "identifier"}
        if r.random() < (0.3 if decoys else 0.15):
            world.memoised = True
            world.data["record_key"] = name
    _people(r, world, n, method)
    _terms(r, world, n, method)
    if r.random() < 0.05:
        for i in range(40):
            _add(r, world, f"wide{i}", n, "plain", method)
    _requirements(r, world, method)
    world.method |= method_options(r, method, world)
    if r.random() < 0.15:
        _duplicates(r, world)
    world.through_toml = r.random() < 0.2
    world.dependence = 1.0 if r.random() < 0.8 else 0.05
    _markers(r, world)
    _harder(random.Random(f"harder {seed}"), world)
    order = list(world.columns)
    r.shuffle(order)
    world.columns = {name: world.columns[name] for name in order}
    return world


def _people(r: random.Random, world: World, n: int, method: str) -> None:
    """Quasi-identifiers, secrets and harmless columns."""
    for i in range(r.choice((0, 1, 1, 2, 2, 3, 4) if method == "decoys" else (1, 1, 1, 2, 2, 3, 4, 6))):
        _add(
            r,
            world,
            r.choice((f"q{i}", f"Größe {i}", f"=q{i}", f"../q.{i}", f"q\n{i}", f"'q{i}")),
            n,
            "quasi-identifier",
            method,
        )
    several = (1, 1, 1, 2) if method not in ("anatomy", "hilbert", "three-phase", "sweep") or r.random() < 0.1 else (1,)
    for i in range(0 if method == "suppress" and r.random() < 0.7 else r.choice(several)):
        _add(r, world, r.choice((f"s{i}", f"s {i}", f"-s{i}")), n, "sensitive", method)
    if method in ("decoys", "rating") or r.random() < 0.02:
        for i in range(r.choice((0, 1, 2))):
            _add(r, world, f"sq{i}", n, "sensitive-quasi-identifier", method)
    for i in range(r.choice((0, 0, 0, 1))):
        _add(r, world, f"p{i}", n, "plain", method)


def _add(r: random.Random, world: World, name: str, n: int, role: str, method: str) -> None:
    secret = role.startswith("sensitive")
    kind = r.choice(("word", "word", "odd", "int", "float", "bool", "date", "constant", "code", "odd numbers"))
    if secret and kind in ("constant", "bool", "float", "odd numbers") and r.random() < 0.93:
        kind = "word"
    pool = _pool(r, kind, r.choice((4, 4, 6, 6, 9)) if secret else r.choice((1, 2, 4, 8, 20, n)), n)
    skew = r.random() < (0.2 if secret else 0.4)
    weights = [1 / (i + 1) ** (1 if secret else 2) if skew else 1 for i in range(len(pool))]
    values: list[Any] = r.choices(pool, weights, k=n)
    if secret and not skew:  # few records of each
        values = [pool[i % len(pool)] for i in range(n)]
        r.shuffle(values)
    holes = r.choice((0, 0, 0, 0.05, 0.1 if secret else 0.4))
    values = [None if holes and r.random() < holes else value for value in values]
    world.columns[name] = values
    attribute: dict[str, Any] = {"role": role}
    numeric = kind in ("int", "float") and pool
    _meaning(r, world, name, attribute, kind, pool, secret, bool(numeric), method)
    if r.random() < 0.15:
        attribute["missing"] = r.choice(("drop", "drop", "category"))
    if r.random() < (0.01 if any(map(is_missing, values)) else 0.05):
        attribute["missing"] = "reject"
    if r.random() < 0.25 and "values" not in attribute:
        merge = {"min_count": r.choice((2, 3, 5)), "rare": "merge" if r.random() < 0.9 else "refuse"}
        left = labelled(attribute | merge | {"rare": "merge"}, values)
        allowed = 0.1 * n if merge["rare"] == "merge" else 0
        if (left["(other)"] <= allowed and len(left) > 3) or r.random() < 0.02:
            attribute |= merge
    world.attributes[name] = attribute


def _pool(r: random.Random, kind: str, size: int, n: int) -> list[Any]:
    tag = f"{r.getrandbits(16):04x}"
    if kind == "word":
        return [f"W{tag}-{i}" for i in range(size)]
    if kind == "odd":
        return r.sample(ODD_TEXTS, min(size, len(ODD_TEXTS)))
    if kind == "int":
        start = r.choice((0, -10, 18, 10**6))
        return sorted({start + r.randrange(r.choice((5, 60, 5000))) for _ in range(size)})
    if kind == "float":
        return sorted({round(r.uniform(-3, 90), r.choice((0, 1, 4))) for _ in range(size)})
    if kind == "bool":
        return [True, False]
    if kind == "date":
        return [datetime.date(2000 + r.randrange(20), 1 + r.randrange(12), 1 + r.randrange(28)) for _ in range(size)]
    if kind == "code":
        return sorted({f"{r.randrange(99999):05d}" for _ in range(size)})
    if kind == "odd numbers":
        return r.sample([0.1, -0.0, 1e-7, 1e300, 2.0**53, 3.0, -2.5, float("inf"), 5e-324], r.randint(1, 6))
    return [f"C{tag}"]


def _meaning(
    r: random.Random, world: World, name: str, attribute: dict[str, Any], kind: str, pool: list[Any], secret: bool,
    numeric: bool, method: str,
) -> None:  # fmt: skip
    """A domain, bins, a hierarchy or a distance for some columns; some of them wrong."""
    texts = list(dict.fromkeys(text(value) for value in pool))
    roll = r.random()
    if numeric and roll < 0.25:
        low, high = min(pool), max(pool)
        step = max(1, (high - low) // r.choice((2, 3, 5)))
        edges = [float(low)]
        while edges[-1] <= high:
            edges.append(edges[-1] + step)
        attribute["bins"] = edges if r.random() < 0.9 else [*edges[:-1], edges[-1] + 1]
        if secret and r.random() < 0.5:
            attribute["distance"] = r.choice(("ordinal", "numeric"))
        return
    if kind in ("word", "odd", "code", "constant") and roll < 0.3:
        extra = r.random() < 0.2
        groups: dict[str, list[str]] = {}
        for value in [*texts, *(["Wextra-0", "Wextra-1"] if extra else [])]:
            groups.setdefault(f"G{name[-1]}{r.randrange(3)}", []).append(value)
        if r.random() < 0.01 and len(texts) > 1:
            next(iter(groups.values())).pop()
        clean = all(c not in value for value in texts for c in "\n\r\"';\t") and all(v == v.strip() for v in texts)
        if clean and r.random() < 0.5:
            file = f"tree{len(world.files)}.csv"
            world.files[file] = "".join(f"{v};{g};*\n" for g, held in groups.items() for v in held)
            attribute["hierarchy"] = file
        else:
            attribute["hierarchy"] = {"tree": {g: held for g, held in groups.items() if held}}
        if secret and r.random() < 0.6:
            attribute["distance"] = "tree"
    elif kind == "code" and roll < 0.7:
        attribute["hierarchy"] = {"prefix": r.choice(([3, 1], [4], [2, 0], [9, 3]))}
    elif numeric and roll < 0.5:
        attribute["hierarchy"] = {"widths": r.choice(([5], [5, 10], [2, 20, 100], [0.5, 5]))}
    elif secret and roll < 0.5 and kind != "odd numbers":
        attribute["values"] = [*texts, *(["Wmore"] if r.random() < 0.3 and kind == "word" else [])]
        attribute["distance"] = r.choice(("equal", "ordinal"))
    elif secret and kind == "int":
        attribute["distance"] = r.choice(("equal", "ordinal", "numeric"))


def _terms(r: random.Random, world: World, n: int, method: str) -> None:
    """Set-valued columns with a knowledge table."""
    if method not in ("suppress", "mondrian") and r.random() < 0.99:
        return
    if method == "mondrian" and r.random() < 0.6:
        return
    for i in range(r.choice((1, 1, 1, 2))):
        name = f"t{i}"
        terms = [r.choice((f"Tm{i}{j}", f"T m{i}{j}", f"=T{i}{j}")) for j in range(r.choice((1, 3, 5, 8)))]
        labels = [r.choice((f"L{i}{j}", f"@L{i}{j}")) for j in range(r.choice((2, 4, 6)))]
        pairs = [(label, term) for label in labels for term in terms if r.random() < 0.5]
        pairs += [(labels[0], terms[0])]
        pairs += [(label, "") for label in labels if all(label != one for one, _ in pairs)]
        known = list(dict.fromkeys(term for _, term in pairs if term))
        if r.random() < 0.2:
            known.append("Tunknown")
        attribute: dict[str, Any] = {"role": "quasi-sensitive", "unknown": r.choice(("reject", "drop", "keep"))}
        header, lines = ["label", "term"], [list(pair) for pair in pairs]
        if r.random() < 0.3:
            world.weights[name] = {label: float(r.randint(1, 4)) for label in labels}
            header.append("weight")
        if r.random() < 0.4:
            raw = [r.randint(1, 5) for _ in labels]
            world.priors[name] = {label: part / sum(raw) for label, part in zip(labels, raw, strict=True)}
            header.append("prior")
        for line in lines:
            line += [repr(part[name][line[0]]) for part in (world.weights, world.priors) if name in part]
        file = f"know{i}.csv"
        world.files[file] = "\n".join(",".join(line) for line in [header, *lines]) + "\n"
        attribute["knowledge"] = file
        sets = [r.sample(known, r.randint(0, min(len(known), 4))) for _ in range(n)]
        if world.source in TYPED and r.random() < 0.5:
            world.columns[name] = [None if r.random() < 0.05 else held for held in sets]
        else:
            attribute["separator"] = r.choice((";", "|", " / "))
            world.columns[name] = [attribute["separator"].join(held) or None for held in sets]
        world.attributes[name] = attribute
        world.knowledge[name] = list(dict.fromkeys((a, b) for a, b in pairs))


def _requirements(r: random.Random, world: World, method: str) -> None:
    for name, attribute in world.attributes.items():
        role = attribute["role"]
        if r.random() < 0.005:
            continue  # a secret that nothing protects must be refused
        if role.startswith("sensitive"):
            ask = decoy_requirements if (method == "decoys") != (r.random() < 0.01) else classic_requirements
            world.require += ask(r, name, attribute, method, world.columns[name])
        elif role == "quasi-sensitive":
            world.require += term_requirements(r, name, len({label for label, _ in world.knowledge[name]}))
    if method in ("anatomy", "rating") and r.random() < 0.95:
        return
    if method != "decoys" and r.random() < 0.4:
        k = r.choice((2, 2, 3, 5, 10))
        world.require.append({"model": "k-anonymity", "k": k if r.random() < 0.02 else max(2, min(k, world.rows // 2))})


def _duplicates(r: random.Random, world: World) -> None:
    """Half of the rows are copies of others, but for what must be unique."""
    for i in range(world.rows // 2):
        copied = r.randrange(world.rows)
        for name, values in world.columns.items():
            if name != "row" and world.attributes[name]["role"] != "identifier":
                values[i] = values[copied]


def _markers(r: random.Random, world: World) -> None:
    """Missing cells written as a marker."""
    if r.random() < 0.15:
        world.data["missing_values"] = ["?", "n/a"]


def _harder(r: random.Random, world: World) -> None:
    """Some worlds with several rows a person, on a public curve, or with values that look the same."""
    roll = r.random()
    if roll < 0.16 and not (world.memoised or world.knowledge):
        _several_rows(r, world)
    elif roll < 0.32 and world.tag in ("hilbert", "three-phase", "mondrian", "auto") and not world.memoised:
        _on_a_curve(r, world)
    elif roll > 0.96:
        _twins(r, world)


def _several_rows(r: random.Random, world: World) -> None:
    """Two or three rows a person: quasi-identifiers move a little, secrets rarely."""
    n, each = world.rows, r.choice((2, 2, 3))
    who = [i // each if r.random() < 0.95 else r.randrange(n) for i in range(n)]
    r.shuffle(who)
    first = {person: i for i, person in reversed(list(enumerate(who)))}
    for name, values in world.columns.items():
        role = world.attributes[name]["role"]
        moves = {"quasi-identifier": 0.2, "sensitive": 0.0 if r.random() < 0.8 else 0.3}.get(role, 1.0)
        if role == "sensitive-quasi-identifier":
            moves = 0.0
        for i, person in enumerate(who):
            if r.random() >= moves:
                values[i] = values[first[person]]
    world.person = "person"
    world.columns["person"] = [f"Pz{person:05d}x" for person in who]
    world.attributes["person"] = {"role": "identifier"}
    world.method.pop("suppression", None)


def _on_a_curve(r: random.Random, world: World) -> None:
    """Numbers, a secret that goes with the first of them, and l = 2."""
    n = r.choice((60, 120, 250))
    heads = [f"n{i}" for i in range(r.choice((2, 3)))]
    pool = [f"W{i}" for i in range(r.choice((4, 6)))]
    world.columns = {"row": list(range(n))} | {head: [r.randrange(80) for _ in range(n)] for head in heads}
    world.columns["s0"] = [
        pool[age // 14 % len(pool)] if r.random() < 0.35 else r.choice(pool) for age in world.columns[heads[0]]
    ]
    world.attributes = {"row": {"role": "plain"}} | {head: {"role": "quasi-identifier"} for head in heads}
    world.attributes["s0"] = {"role": "sensitive"}
    model = r.choice(("frequency-l-diversity", "distinct-l-diversity"))
    world.require = [{"model": model, "on": "s0", "l": 2}]
    name = r.choice((world.tag, "hilbert"))
    world.method = {"name": name} | ({"blind": False} if name == "hilbert" and r.random() < 0.5 else {})
    world.files, world.knowledge, world.priors, world.weights = {}, {}, {}, {}
    world.curve = True


def _twins(r: random.Random, world: World) -> None:
    """Half of the records of one value write it so that nobody sees a difference."""
    texts = [
        name
        for name, values in world.columns.items()
        if world.attributes[name]["role"] in ("sensitive", "quasi-identifier")
        and any(isinstance(value, str) for value in values)
    ]
    if not texts:
        return
    name = r.choice(texts)
    values = world.columns[name]
    value = r.choice([one for one in values if isinstance(one, str)])
    one, other = r.choice(
        [
            (value, value + "\u200b"), (value, "\u00ad" + value), (value + " x", value + "\u00a0x"),
            (value + "a", value + "\u0430"), (value + "\u00e9", value + "e\u0301"), (value, value + "\u2060"),
        ]
    )  # fmt: skip
    places = [i for i, cell in enumerate(values) if cell == value]
    if len(places) < 2:
        return
    for i in places:
        values[i] = one
    for i in r.sample(places, len(places) // 2):
        values[i] = other
    attribute = world.attributes[name]
    if "values" in attribute:
        attribute["values"] = [*(x for x in attribute["values"] if x != value), one, other]
    tree = attribute.get("hierarchy")
    if isinstance(tree, dict) and "tree" in tree:
        for leaves in tree["tree"].values():
            if value in leaves:
                leaves[leaves.index(value) :] = [*leaves[leaves.index(value) + 1 :], one, other]
    world.twins = True
