"""Requirements judged from a release directory, written from their definitions and from nothing of the package.

Plain loops over plain texts: slow, and easy to compare with the papers.
"""

from __future__ import annotations

from collections import Counter
from itertools import combinations, pairwise
from math import comb, inf, log
from typing import Any

from tests.fuzz.reading import MISSING, Read, covered
from tests.fuzz.texts import is_missing

EPS = 1e-7
Histogram = dict[str, float]


def judge(read: Read, requirements: list[dict[str, Any]], overall: dict[str, Histogram], world: Any) -> list[str]:
    """What is wrong with the release, in words. `overall` is the original's distribution by column."""
    out = [] if read.rows else ["there are no rows"]
    for asked in requirements:
        names = [asked["on"]] if isinstance(asked.get("on"), str) else list(asked.get("on") or [])
        if asked["model"] == "k-anonymity":
            out += _k_anonymity(read, names, asked["k"])
            continue
        for name in names:
            if name not in read.entries:
                out.append(f"{name} is protected and not published")
                continue
            out += [f"{asked['model']} on {name}: {words}" for words in _column(read, name, asked, overall, world)]
    return out


def _column(read: Read, name: str, asked: dict[str, Any], overall: dict[str, Histogram], world: Any) -> list[str]:
    form = read.entries[name]["form"]
    if form == "terms":
        return _terms(read, name, asked, world)
    if form == "set":
        return _sets(read, name, asked, overall.get(name, {}))
    if form == "member":
        return _members(read, name, asked)
    if form not in ("exact", "node", "group"):
        return [f"published as {form}"]
    return _classes(read, name, asked)


# ---------------------------------------------------------------- records that look alike


def _keys(read: Read, apart_from: str | None = None) -> list[str]:
    found = read.with_role("quasi-identifier", "sensitive-quasi-identifier")
    return [name for name in found if name != apart_from]


def _grouped(read: Read, keys: list[str]) -> list[list[dict[str, Any]]]:
    out: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in read.rows:
        out.setdefault(tuple(row[key] for key in keys), []).append(row)
    return list(out.values())


def _k_anonymity(read: Read, names: list[str], k: int) -> list[str]:
    keys = names or _keys(read)
    if any(read.entries[key]["form"] in ("set", "member", "terms") for key in keys):
        return ["k-anonymity beside sets"]
    least = min((len(found) for found in _grouped(read, keys)), default=0)
    return [f"k-anonymity: a class of {least}, asked {k}"] if least < k else []


def _histograms(read: Read, name: str) -> list[Histogram]:
    """The values of every class; a general value is divided evenly among those under it."""
    if read.entries[name]["form"] == "group":
        return [dict(held) for held in read.groups[name].values()]  # type: ignore[arg-type]
    under = covered(read.entries[name])
    out = []
    for rows in _grouped(read, _keys(read, name)):
        held: Histogram = {}
        for row in rows:
            leaves = under[row[name] or MISSING]
            for leaf in leaves:
                held[leaf] = held.get(leaf, 0.0) + 1 / len(leaves)
        out.append(held)
    return out


def _classes(read: Read, name: str, asked: dict[str, Any]) -> list[str]:
    classes = _histograms(read, name)
    total: Histogram = {}
    for held in classes:
        for value, mass in held.items():
            total[value] = total.get(value, 0.0) + mass
    size = sum(total.values())
    whole = {value: mass / size for value, mass in total.items()}
    bad = [held for held in classes if not class_holds(held, whole, asked, read.entries[name])]
    if read.entries[name]["form"] == "group":
        seen = Counter(int(row[name]) for row in read.rows)
        if any(seen[group] != sum(held.values()) for group, held in read.groups[name].items()):
            bad.append({"sizes": 0})
        if set(seen) != set(read.groups[name]):
            bad.append({"unknown groups": 0})
    return [f"{len(bad)} of {len(classes)} classes fall short, such as {sorted(bad[0].values())}"] if bad else []


def class_holds(held: Histogram, whole: Histogram, asked: dict[str, Any], entry: dict[str, Any]) -> bool:
    """Whether one class, with so much of every value, meets what is asked."""
    n = sum(held.values())
    masses = sorted(held.values(), reverse=True)
    shares = {value: mass / n for value, mass in held.items()}
    model = asked["model"]
    if model == "distinct-l-diversity":
        return len(masses) >= asked["l"]
    if model == "frequency-l-diversity":
        return masses[0] * asked["l"] <= n + EPS
    if model == "entropy-l-diversity":
        return -sum(share * log(share) for share in shares.values()) >= log(asked["l"]) - EPS
    if model == "recursive-cl-diversity":
        return masses[0] < asked["c"] * sum(masses[asked["l"] - 1 :]) + EPS
    if model == "alpha-k-anonymity":
        return masses[0] <= asked["alpha"] * n + EPS and n >= asked["k"] - EPS
    if model == "p-sensitive-k-anonymity":
        return len(masses) >= asked["p"] and n >= asked["k"] - EPS
    if model == "tau-l-diversity":
        tau, rank = asked["tau"], asked["l"]
        tops = [sum(masses[:k]) / n <= tau + (1 - tau) * (k - 1) / (rank - 1) + EPS for k in range(1, rank)]
        return len(masses) >= rank and all(tops)
    if model == "beta-likeness":
        rises = [(share - whole[value]) / whole[value] for value, share in shares.items()]
        limits = [
            asked["beta"] if asked.get("form") == "basic" else min(asked["beta"], -log(whole[value]))
            for value in shares
        ]
        return all(rise <= limit + EPS for rise, limit in zip(rises, limits, strict=True))
    if model == "delta-disclosure":
        if len(shares) < len(whole):
            return False
        return all(abs(log(share / whole[value])) < asked["delta"] + EPS for value, share in shares.items())
    if model == "le-diversity":
        return _subtree_top(held, asked["e"], entry) * asked["l"] <= n + EPS
    if model == "t-closeness":
        return _distance(shares, whole, asked.get("distance", "equal"), entry) <= asked["t"] + EPS
    raise AssertionError(f"no definition of {model}")


CLASSWISE = (
    "distinct-l-diversity", "frequency-l-diversity", "entropy-l-diversity", "recursive-cl-diversity",
    "alpha-k-anonymity", "p-sensitive-k-anonymity", "tau-l-diversity", "beta-likeness", "delta-disclosure",
    "le-diversity", "t-closeness",
)  # fmt: skip


def judge_left_out(
    n: int, held: dict[str, Histogram], requirements: list[dict[str, Any]], overall: dict[str, Histogram], read: Read
) -> list[str]:
    """Those who are left out, n of them with these secrets, as one class: absence shows, and must not tell."""
    out = []
    for asked in requirements if n else ():
        model = asked["model"]
        if model == "k-anonymity" and n < asked["k"]:
            out.append(f"{n} people are left out, asked {asked['k']}")
        names = [asked["on"]] if isinstance(asked.get("on"), str) else list(asked.get("on") or [])
        out += [
            f"those who are left out break {model} on {name}"
            for name in names
            if model in CLASSWISE and name in held
            if not class_holds(held[name], overall[name], asked, read.entries[name])
        ]
    return out


def _subtree_top(held: Histogram, e: int, entry: dict[str, Any]) -> float:
    tree = entry["hierarchy"]
    level = dict(zip(tree[0], tree[len(tree) - 1 - e], strict=True))
    trees: Histogram = {}
    for value, mass in held.items():
        trees[level[value]] = trees.get(level[value], 0.0) + mass
    return max(trees.values())


def _distance(p: Histogram, q: Histogram, kind: str, entry: dict[str, Any]) -> float:
    """Earth mover's distances, each by its closed form."""
    if kind == "equal":
        return sum(abs(p.get(v, 0.0) - q.get(v, 0.0)) for v in set(p) | set(q)) / 2
    if kind == "ordered":
        # values that nobody has keep their place in a declared order
        order = entry["values"]
        ahead = moved = 0.0
        for value in order[:-1]:
            ahead += p.get(value, 0.0) - q.get(value, 0.0)
            moved += abs(ahead)
        return moved / (len(order) - 1) if len(order) > 1 else 0.0
    tree = entry["hierarchy"]
    height, cost = len(tree) - 1, 0.0
    for h in range(1, height + 1):
        below: dict[str, list[float]] = {}
        seen: dict[str, float] = {}
        for i, leaf in enumerate(tree[0]):
            child = f"{tree[h - 1][i]}"
            seen[child] = seen.get(child, 0.0) + p.get(leaf, 0.0) - q.get(leaf, 0.0)
        for i in range(len(tree[0])):
            child, parent = tree[h - 1][i], tree[h][i]
            if child in seen:
                below.setdefault(parent, []).append(seen.pop(child))
        for extras in below.values():
            plus, minus = sum(x for x in extras if x > 0), -sum(x for x in extras if x < 0)
            cost += h / height * min(plus, minus)
    return cost


# ---------------------------------------------------------------- sets of possible values


def _sets(read: Read, name: str, asked: dict[str, Any], prior: Histogram) -> list[str]:
    entry = read.entries[name]
    values = entry["values"]
    cells = [row[name] for row in read.rows]
    if any(not cell <= set(values) for cell in cells):
        return ["a set names a value outside the domain"]
    model = asked["model"]
    if model in ("semantic-diversity", "le-diversity"):
        apart = _apart(entry, asked)
        bad = sum(1 for cell in cells if not _separated(sorted(cell), apart, asked["l"]))
        return [f"{bad} sets without {asked['l']} distant values"] if bad else []
    if model == "t-closeness":
        worst = max(_belief_distance(cell, entry, prior, asked) for cell in set(cells))
        return [f"distance {worst:.4f}, asked {asked['t']}"] if worst > asked["t"] + EPS else []
    if model == "local-privacy":
        d, eta, p = entry["design"]["d"], entry["design"]["eta"], entry["design"]["p"]
        rho = 1.0 if eta == d else inf if p == 1 else 1 + p * d / (eta * (1 - p))
        within = rho < inf and log(rho) <= asked["epsilon"] + EPS
        return [] if within else [f"a ratio of {rho:.4f}, asked epsilon {asked['epsilon']}"]
    least = min(len(cell) for cell in cells)
    wanted = asked.get("l", asked.get("k"))
    return [f"a set of {least}, asked {wanted}"] if least < wanted - EPS else []


def _belief_distance(cell: frozenset[str], entry: dict[str, Any], prior: Histogram, asked: dict[str, Any]) -> float:
    """Bayes' theorem with the published design: p(set | v) = p [v in set] / C(d-1, eta-1) + (1-p) / C(d, eta)."""
    design = entry["design"]
    d, eta, p = design["d"], design["eta"], design["p"]
    joint = {
        value: prior.get(value, 0.0) * (p * (value in cell) / comb(d - 1, eta - 1) + (1 - p) / comb(d, eta))
        for value in entry["values"]
    }
    total = sum(joint.values())
    if len(cell) != eta or not total:
        return inf
    belief = {value: mass / total for value, mass in joint.items()}
    return _distance(belief, prior, asked.get("distance", "equal"), entry)


def _apart(entry: dict[str, Any], asked: dict[str, Any]) -> Any:
    """Whether two values are far enough from each other."""
    values, tree = entry["values"], entry["hierarchy"]
    place = {value: i for i, value in enumerate(values)}
    if asked["model"] == "le-diversity":
        level = dict(zip(tree[0], tree[len(tree) - 1 - asked["e"]], strict=True))
        return lambda a, b: level[a] != level[b]
    kind, d = entry["distance"], asked["d"]
    if kind == "ordinal":
        return lambda a, b: abs(place[a] - place[b]) >= d - EPS
    if kind == "numeric":
        edges = entry["edges"]
        at = [(x + y) / 2 for x, y in pairwise(edges)] if edges else list(map(float, values))
        return lambda a, b: abs(at[place[a]] - at[place[b]]) >= d - EPS
    if kind == "tree":
        paths = {leaf: [level[i] for level in tree] for i, leaf in enumerate(tree[0])}
        return lambda a, b: next(h for h in range(len(tree)) if paths[a][h] == paths[b][h]) >= d - EPS
    return lambda a, b: kind[place[a]][place[b]] >= d - EPS


def _separated(members: list[str], apart: Any, size: int) -> bool:
    return any(all(apart(a, b) for a, b in combinations(some, 2)) for some in combinations(members, size))


def _members(read: Read, name: str, asked: dict[str, Any]) -> list[str]:
    """Shuffled rows: people who agree in everything else hold l distant values, and no value more often than people."""
    apart, eta = _apart(read.entries[name], asked), read.entries[name]["design"]["eta"]
    others = [other for other in read.entries if other != name]
    for rows in _grouped(read, others):
        held = Counter(row[name] or MISSING for row in rows)
        if len(rows) % eta or max(held.values()) > len(rows) // eta:
            return ["rows do not divide into people"]
        for value in held:
            partners = [other for other in held if other != value and apart(value, other)]
            if not _separated(partners, apart, asked["l"] - 1):
                return [f"a value without {asked['l'] - 1} distant partners"]
    return []


# ---------------------------------------------------------------- terms and what they are linked to


def _terms(read: Read, name: str, asked: dict[str, Any], world: Any) -> list[str]:
    """Beliefs in labels, group by group, by the formula P(L | t) = w(L) / sum of w over the labels that fit."""
    file = world.attributes[name]["knowledge"]
    joint = [other for other in read.entries if world.attributes.get(other, {}).get("knowledge") == file]
    sets = {label: {t for one, t in world.knowledge[name] if one == label and t} for label, _ in world.knowledge[name]}
    weights = world.weights.get(name, {})
    prior = world.priors.get(name) or _mean(list(true_terms(world, joint)), sets, weights)
    for rows in _grouped(read, _keys(read)):
        told = [frozenset().union(*(row[one] for one in joint)) for row in rows]
        belief = _mean(told, sets, weights, prior if asked.get("unlinked") == "prior" else None)
        shares = sorted(belief.values(), reverse=True)
        if asked["model"] == "qs-diversity":
            good = shares[0] <= asked["c"] * sum(shares[asked["l"] - 1 :]) + EPS
        elif asked.get("distance", "l2") == "l2":
            good = sum((belief[label] - prior[label]) ** 2 for label in sets) ** 0.5 <= asked["t"] + EPS
        else:
            moves = [belief[label] - prior[label] for label in sets]
            gap = abs(sum(belief.values()) - sum(prior.values()))
            good = (sum(map(abs, moves)) + gap) / 2 <= asked["t"] + EPS
        if not good:
            return [f"a group of {len(rows)} believes {[round(share, 3) for share in shares[:4]]}"]
    return []


def _mean(
    told: list[frozenset[str]], sets: dict[str, set[str]], weights: dict[str, float], prior: Histogram | None = None
) -> Histogram:
    out = dict.fromkeys(sets, 0.0)
    for terms in told:
        fit = [label for label, own in sets.items() if terms <= own]
        total = sum(weights.get(label, 1.0) for label in fit)
        for label in fit:
            out[label] += weights.get(label, 1.0) / total / len(told)
        if not fit and prior is not None:
            for label in sets:
                out[label] += prior[label] / len(told)
    return out


def true_terms(world: Any, names: list[str]) -> Any:
    """The sets of terms of the original, as the policy reads them, record by record; dropped records tell nothing."""
    drops = [name for name, a in world.attributes.items() if a.get("missing") == "drop" and a["role"] != "identifier"]
    for i in range(world.rows):
        if any(is_missing(world.columns[name][i]) for name in drops):
            continue
        held: set[str] = set()
        for name in names:
            held |= true_set(world, name, i)
        yield frozenset(held)


def true_set(world: Any, name: str, i: int) -> set[str]:
    """One record's terms: trimmed, without empty ones, and without unknown ones if those are dropped."""
    attribute = world.attributes[name]
    cell = world.columns[name][i]
    parts = [] if cell is None else cell.split(attribute["separator"]) if isinstance(cell, str) else cell
    held = {part.strip() for part in parts} - {""}
    known = {term for _, term in world.knowledge[name]}
    return held & known if attribute["unknown"] == "drop" else held
