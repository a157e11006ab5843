"""Step 3, the requirements: guarantees in plain words, parameters, and adversaries that are not covered."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from nicegui import events, ui
from pydantic import ValidationError

from noren.errors import NorenError
from noren.models import MODELS, Model
from noren.results import visible
from noren_studio import texts
from noren_studio.edits import QUASI, SECRET, add_requirement, remove_requirement, set_parameter
from noren_studio.forms import form
from noren_studio.parts import button, card, div, edit, line, note, problems, refresh, tag, verdicts, watch
from noren_studio.rebuild import keyed
from noren_studio.session import Session, mark_of
from noren_studio.work.choosing import reach
from noren_studio.work.opening import roles

FIRST: Mapping[str, Mapping[str, Any]] = {
    "k-anonymity": {"k": 5}, "distinct-l-diversity": {"l": 3}, "frequency-l-diversity": {"l": 3},
    "entropy-l-diversity": {"l": 2.5}, "recursive-cl-diversity": {"c": 3, "l": 3},
    "alpha-k-anonymity": {"alpha": 0.5, "k": 5}, "p-sensitive-k-anonymity": {"p": 2, "k": 5},
    "tau-l-diversity": {"tau": 0.5, "l": 3}, "t-closeness": {"t": 0.3}, "beta-likeness": {"beta": 1},
    "delta-disclosure": {"delta": 1}, "belief": {"most": 0.5}, "informed-belief": {"most": 0.6, "prior": "shares.csv"},
    "expanded-k": {"k": 5}, "local-privacy": {"epsilon": 3},
    "semantic-diversity": {"l": 3, "d": 1}, "le-diversity": {"l": 3, "e": 1}, "qs-diversity": {"c": 3, "l": 3},
    "qs-closeness": {"t": 0.3}, "mechanism": {"most": 0.5}, "m-invariance": {"m": 3},
}  # fmt: skip
"""Where a new requirement begins; a contract test makes one of each."""


def build(session: Session) -> None:
    asked = list(session.draft.policy.get("require", []))
    problems(session.rules.about("require", "method", "dependence"))
    _reachable(session)
    for at, given in enumerate(asked):
        _requirement(session, at, given)
    if not asked:
        note(texts.NOTHING_ASKED, tone="warn")
    _not_covered(session)
    _add(session)


def _requirement(session: Session, at: int, given: Mapping[str, Any]) -> None:
    name = given.get("model", "")
    kind = MODELS.get(name)
    if kind is None:
        note(texts.unknown_model(name), tone="bad")
        return
    box = ui.element("section").classes("n-card").props(f'data-requirement="{name}"')
    with keyed(box, (name, str(given.get("on")))):
        with div("n-row").style("justify-content: space-between; flex-wrap: nowrap"):
            line(texts.model_title(name), "n-key").style("font-weight: 600; font-size: var(--n-size-lead)")
            with div("n-row tight"):
                if given in session.drafted_requirements():
                    tag(texts.FOR_YOU, "warn")
                    button(texts.ACCEPT, partial(_accept, session, given), "plain")
                button(texts.REMOVE, partial(_remove, session, at, name), "plain")
        _promise(session, kind, given)
        with div("n-row top").style("gap: 28px"):
            with div("n-col").style("flex: 1 1 420px"):
                form(kind, given, partial(_change, session, at, name), ("model", "on"))
            if _names_columns(kind):
                _columns(session, at, name, given)


def _accept(session: Session, given: Mapping[str, Any]) -> None:
    session.accepted.add(mark_of(given))
    refresh()


def _promise(session: Session, kind: type[Model], given: Mapping[str, Any]) -> None:
    """Show what the requirement guarantees and what it does not."""
    try:
        model = kind(**{key: value for key, value in given.items() if key != "model"})
    except (ValidationError, NorenError, ValueError):
        return  # the problems stand above
    on = ", ".join(model.on)
    sets = any(method.get("name") == "decoys" for method in _methods(session))
    promise = model.promise(on, sets)
    line(promise.says).style("max-width: 82ch")
    with div("n-row tight").style("flex-wrap: nowrap; align-items: flex-start"):
        tag(texts.LEAVES_OPEN, "warn")
        line(promise.leaves_open, "n-soft")
    _broken_now(session, model)


def _broken_now(session: Session, model: Model) -> None:
    """Show how many people break it in the raw table."""
    found = session.result("risk")
    if found is None:
        return
    about = {*model.on} or {"quasi-identifiers"}
    broken = [v for v in found["verdicts"] if v["model"] == model.model and v["column"] in about]
    if broken and all(v["required"] == model.required for v in broken):
        for one in broken:
            line(texts.breaks_now(one["breaches"], one["records"], one["column"]), "n-why")


def _methods(session: Session) -> list[Mapping[str, Any]]:
    found = session.draft.policy.get("method", [])
    return [found] if isinstance(found, Mapping) else list(found)


def _names_columns(kind: type[Model]) -> bool:
    return kind.model_fields["on"].is_required() or kind.about != "classes"


def _columns(session: Session, at: int, name: str, given: Mapping[str, Any]) -> None:
    """Show the columns to which it can apply."""
    now = given.get("on", [])
    named = [now] if isinstance(now, str) else list(now)
    fit = [one for one, role in roles(session.draft.policy).items() if role in SECRET or role == "quasi-sensitive"]
    options = {one: visible(one) for one in (*fit, *named)}

    def change(event: events.ValueChangeEventArguments) -> None:
        _change(session, at, name, "on", list(event.value))

    select = ui.select(options, value=named, multiple=True, label=texts.PROTECTS, on_change=change)
    select.props("dense outlined options-dense use-chips").style("min-width: 260px; flex: 0 1 340px")


def _change(session: Session, at: int, name: str, field: str, value: Any) -> None:
    edit(session, texts.set_to(name, value, field), partial(set_parameter, at=at, field=field, value=value))


def _remove(session: Session, at: int, name: str) -> None:
    edit(session, texts.without(name), partial(remove_requirement, at=at))


def _add(session: Session) -> None:
    """Show every model with its description."""
    with card(texts.ADD_TITLE, texts.ADD_WHY):
        secrets = [one for one, role in roles(session.draft.policy).items() if role in SECRET]
        options = {name: f"{texts.model_title(name)}: {_short(kind)}" for name, kind in MODELS.items()}

        def add() -> None:
            if picked.value is None:
                return
            kind = MODELS[picked.value]
            on = {"on": secrets[:1]} if _names_columns(kind) else {}
            made = {"model": picked.value, **on, **FIRST[picked.value]}
            session.kept.pop("to add", None)
            edit(session, texts.with_(picked.value), partial(add_requirement, given=made))

        def keep(event: events.ValueChangeEventArguments) -> None:
            session.kept["to add"] = event.value  # the page may be built anew before it is added

        with div("n-row").style("flex-wrap: nowrap"):
            now = session.kept.get("to add")
            picked = ui.select(options, value=now, label=texts.MODEL, with_input=True, on_change=keep)
            picked.props("dense outlined options-dense").classes("n-grow")
            button(texts.ADD, add, "main")


def _short(kind: type[Model]) -> str:
    """Return the first sentence about a model's first parameter."""
    fields = [field for name, field in kind.model_fields.items() if name not in ("model", "on")]
    return next((field.description or "" for field in fields if field.is_required()), "")


# ---------------------------------------------------------------------- what is reachable, and who is not covered


def _start(session: Session) -> None:
    session.judge("reach", reach)
    refresh()


def _reachable(session: Session) -> None:
    """Show what the policy reaches on some records of this table."""
    with card(texts.REACH, texts.REACH_WHY):
        if session.rules.policy is None:
            note(texts.RISK_NEEDS_POLICY, tone="warn")
            return
        watch(session, "reach", partial(_start, session))
        found = session.result("reach")
        if found is not None and session.is_fresh("reach"):
            _verdicts(found)
        else:
            button(texts.TRY, partial(_start, session), "main")


def _verdicts(found: Mapping[str, Any]) -> None:
    line(texts.tried_on(found["records"]), "n-soft n-small")
    verdicts(found["verdicts"])
    if texts.costs(found["lost"]):
        line(texts.costs(found["lost"]), "n-soft")


def _not_covered(session: Session) -> None:
    """Show which adversaries no requirement covers."""
    policy = session.rules.policy
    if policy is None:
        return
    stands = max((model.stands for model in policy.require), default=-1)
    now = roles(session.draft.policy)
    with card(texts.ADVERSARIES, texts.ADVERSARIES_WHY):
        found_by = any(role in QUASI for role in now.values())
        looked_up = any(model.about == "classes" for model in policy.require)
        for level, (who, does) in enumerate(texts.ADVERSARY):
            covered = (looked_up or not found_by) if level == 0 else stands >= level
            with div("n-row").style("flex-wrap: nowrap; align-items: flex-start"):
                found = tag(texts.COVERED if covered else texts.NOT_COVERED, "good" if covered else "warn")
                found.style("flex: 0 0 112px")
                line(who, "n-key").style("flex: 0 0 240px")
                line(does, "n-soft")
        loose = [one for one, role in now.items() if role in SECRET and one not in policy.protected]
        if loose:
            note(texts.unprotected(loose), tone="bad")
