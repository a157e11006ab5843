"""The table of columns: search, filter by role, assign and accept roles.

Quasar draws no more rows than are seen, so that a thousand columns cost what twenty do. Cells are templates that stand
here; what comes from a table goes into them as data, which Vue shows as text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from nicegui import events, ui

from noren.results import visible
from noren_studio import texts
from noren_studio.edits import set_role
from noren_studio.parts import button, div, edit, refresh
from noren_studio.session import Session
from noren_studio.work.opening import roles

CELLS = {
    "name": '<q-td :props="props" :class="{\'n-on\': props.row.on}"><button type="button" class="n-pick n-cut" '
    ':title="props.row.name" :aria-current="props.row.on" @click="() => $parent.$parent.$emit(\'pick\', props.row.id)">'
    "{{ props.row.name }}</button></q-td>",
    "role": '<q-td :props="props"><q-select dense outlined options-dense emit-value map-options '
    'data-role-of class="n-bare" :model-value="props.row.role" :options="props.col.options" :label="props.row.said" '
    "@update:model-value=\"(role) => $parent.$parent.$emit('become', [props.row.id, role])\"/></q-td>",
    "short": '<q-td :props="props"><span class="n-tag" :class="props.row.tone">{{ props.row.short }}</span></q-td>',
    "kind": '<q-td :props="props">{{ props.row.kind }}<div class="n-soft n-small n-cut n-evidence" '
    ':title="props.row.evidence">'
    "{{ props.row.evidence }}</div></q-td>",
    "bars": '<q-td :props="props"><div v-if="props.row.bars.length" role="img" class="n-bars" '
    ':aria-label="props.row.bars_named"><div v-for="height in props.row.bars" :style="{height: height + \'%\'}"/></div>'
    '<div class="n-soft n-small n-cut" :title="props.row.bars_say">{{ props.row.bars_say }}</div></q-td>',
    "why": '<q-td :props="props"><div class="n-why n-two" :title="props.row.why">{{ props.row.why }}</div></q-td>',
    "state": '<q-td :props="props"><button v-if="props.row.drafted" type="button" class="n-pick n-small" '
    ':aria-label="props.row.accepting" @click="() => $parent.$parent.$emit(\'accept\', props.row.id)">'
    '{{ props.row.state }}</button><span v-else class="n-tag good">{{ props.row.state }}</span></q-td>',
}
TICKS = {
    "header-selection": '<q-checkbox dense v-model="props.selected" aria-label="{label}"/>',
    "body-selection": '<q-checkbox dense v-model="props.selected" :aria-label="props.row.ticking"/>',
}
WIDE, NARROW = ("name", "role", "kind", "distinct", "missing", "bars", "why", "state"), ("name", "short", "state")
TONES: dict[str, texts.Tone] = {"identifier": "", "drop": "", "plain": "", "quasi-identifier": "accent",
         "sensitive": "warn", "sensitive-quasi-identifier": "warn", "quasi-sensitive": "warn"}  # fmt: skip
DRAFTED = "drafted"
"""The filter that leaves what was decided for the holder and looked at by nobody."""


class ColumnTable:
    """Every column with its role; `wide` also with its guess. `pick` gets the clicked column."""

    def __init__(self, session: Session, wide: bool, pick: Callable[[str], None]) -> None:
        self._session, self._wide = session, wide
        self._kept = session.kept.setdefault("columns shown", {"search": "", "only": "", "ticked": []})
        self._given = {one["name"]: one for one in session.table["columns"]} if session.table else {}
        self._controls()
        options = [{"value": role, "label": short} for role, (short, _) in texts.ROLES.items()]
        columns = [
            {"name": name, "label": texts.COLUMN_HEADS[name], "field": name, "options": options,
             "align": "right" if name in ("distinct", "missing") else "left",
             **dict.fromkeys(("classes", "headerClasses"), "n-missing" if name == "missing" else "")}
            for name in (WIDE if wide else NARROW)
        ]  # fmt: skip
        self._table = ui.table(columns=columns, rows=self._rows(), row_key="id", selection="multiple",
                               pagination={"rowsPerPage": 0}, on_select=self._tick)  # fmt: skip
        self._table.props("dense flat virtual-scroll hide-bottom data-columns").classes("n-columns")
        self._table.props(f"virtual-scroll-item-size={60 if wide else 34} virtual-scroll-sticky-size-start=32")
        self._table.selected = [one for one in self._table.rows if one["id"] in self._kept["ticked"]]
        for name in WIDE if wide else NARROW:
            if name in CELLS:
                self._table.add_slot(f"body-cell-{name}", CELLS[name])
        for slot, template in TICKS.items():
            self._table.add_slot(slot, template.replace("{label}", texts.TICK_ALL))
        self._table.on("pick", lambda event: pick(event.args))
        self._table.on("become", lambda event: self._become([event.args[0]], event.args[1]))
        self._table.on("accept", lambda event: self._accept([event.args]))

    @property
    def names(self) -> list[str]:
        """Return the shown columns, in order."""
        return [one["id"] for one in self._table.rows]

    def update(self) -> None:
        """Update only the changed rows."""
        self._table.rows = self._rows()

    def show(self, name: str) -> None:
        """Mark the selected column, and scroll to it."""
        self.update()
        if name in self.names:
            self._table.run_method("scrollTo", self.names.index(name))

    # ------------------------------------------------------------------ what is shown

    def _rows(self) -> list[dict[str, Any]]:
        search, only = self._kept["search"].casefold(), self._kept["only"]
        picked = None if self._wide else self._session.kept.get("column")
        found = []
        for name, role in roles(self._session.draft.policy).items():
            drafted = self._session.is_drafted(name)
            if search in name.casefold() and (not only or only == role or (only == DRAFTED and drafted)):
                found.append(self._row(name, role, drafted) | {"on": name == picked})
        return found

    def _row(self, name: str, role: str, drafted: bool) -> dict[str, Any]:
        called, column = visible(name), self._given.get(name)
        state = texts.ACCEPT if drafted else texts.REVIEWED
        row: dict[str, Any] = {"id": name, "name": called, "role": role, "drafted": drafted, "state": state}
        row |= {"short": texts.ROLES[role][0], "tone": TONES[role]}
        row |= {"accepting": texts.accept(called), "ticking": texts.tick(called)}
        if not self._wide or column is None:
            return row
        most, bars = max(column["bars"], default=0) or 1, column["bars"] if role != "identifier" else []
        return row | {
            "said": texts.role_for(called),
            "kind": column["kind"],
            "evidence": visible(column["evidence"] if column["evidence"] not in ("texts", "no values") else ""),
            "distinct": texts.VERY_MANY if column["distinct"] is None else f"{column['distinct']:,}",
            "missing": f"{column['missing']:,}" if column["missing"] else "-",
            "bars": [round(100 * one / most) for one in bars],
            "bars_say": visible(column["bars_say"]) if bars else "",
            "bars_named": visible(texts.histogram(name, column["bars_say"])),
            "why": visible(column["why"] if role == column["role"] else texts.YOU_DECIDED),
        }

    # ------------------------------------------------------------------ what can be done

    def _controls(self) -> None:
        now = roles(self._session.draft.policy)
        drafted = sum(self._session.is_drafted(name) for name in now)
        short = {role: words for role, (words, _) in texts.ROLES.items()}
        with div("n-row tight"):
            search = ui.input(texts.SEARCH, value=self._kept["search"]).props("dense outlined clearable debounce=120")
            search.on_value_change(lambda event: self._narrow("search", event.value or "")).classes("n-field")
            counted = {role: texts.counted(words, n) for role, words in short.items()
                       if (n := sum(one == role for one in now.values()))}  # fmt: skip
            options = {"": texts.counted(texts.ALL_COLUMNS, len(now)), DRAFTED: texts.counted(texts.FOR_YOU, drafted)}
            only = self._kept["only"] = self._kept["only"] if self._kept["only"] in options | counted else ""
            select = ui.select(options | counted, value=only, label=texts.SHOW_ONLY)
            select.on_value_change(lambda event: self._narrow("only", event.value))
            bulk = ui.select(short, label=texts.ROLE_OF_TICKED)
            bulk.on_value_change(lambda event: self._become(self._kept["ticked"], event.value))
            for one in (select, bulk):
                one.props("dense outlined options-dense").classes("n-field")
            if drafted:
                button(texts.accept_all(drafted), lambda: self._accept(list(now)), "plain")

    def _narrow(self, what: str, value: str) -> None:
        self._kept[what] = value
        self.update()

    def _tick(self, event: events.TableSelectionEventArguments) -> None:
        self._kept["ticked"] = [one["id"] for one in event.selection]

    def _become(self, names: Sequence[str], role: str | None) -> None:
        if not names or role is None:
            ui.notify(texts.TICK_COLUMNS, type="warning")
            return

        def change(sections: dict[str, Any]) -> None:
            for name in names:
                set_role(sections, name, role)

        called = names[0] if len(names) == 1 else texts.columns_named(len(names))
        self._session.accepted.update(names)
        self._kept["ticked"] = []
        edit(self._session, texts.set_to(called, texts.ROLES[role][0].lower()), change)

    def _accept(self, names: Sequence[str]) -> None:
        self._session.accepted.update(names)
        refresh()
