"""A tree editor for hierarchies: combine, rename, dissolve, and move nodes by dragging, keys or a list."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from nicegui import events, ui

from noren.errors import NorenError
from noren.results import visible
from noren.schema import Hierarchy
from noren_studio import texts, trees
from noren_studio.parts import button, div, line, say
from noren_studio.rebuild import keyed
from noren_studio.session import Session

Change = Callable[[Sequence[trees.Path]], trees.Tree]
FEW_NODES = 30
"""Nodes of the top that are folded out at first."""
NODE = """
<div class="n-node" draggable="true" tabindex="0" :data-node="props.node.id" :title="props.node.label"
  >{{ props.node.label }}</div>
"""
"""Vue puts the label in as text."""
HANDLERS = {
    "dragstart": "(e) => { const n = e.target.closest('[data-node]'); if (!n) return;"
    " e.dataTransfer.effectAllowed = 'move'; e.dataTransfer.setData('text/plain', n.dataset.node);"
    " e.currentTarget.dataset.held = n.dataset.node; }",
    "dragover": "(e) => { const n = e.target.closest('.q-tree__node-header')?.querySelector('[data-node]');"
    " e.currentTarget.querySelectorAll('.n-over').forEach((o) => { if (o !== n) o.classList.remove('n-over'); });"
    " if (n && e.currentTarget.dataset.held) { e.preventDefault(); n.classList.add('n-over'); } }",
    "dragend": "(e) => { delete e.currentTarget.dataset.held;"
    " e.currentTarget.querySelectorAll('.n-over').forEach((o) => o.classList.remove('n-over')); }",
    "drop": "(e) => { const n = e.target.closest('.q-tree__node-header')?.querySelector('[data-node]');"
    " const held = e.currentTarget.dataset.held; delete e.currentTarget.dataset.held;"
    " e.currentTarget.querySelectorAll('.n-over').forEach((o) => o.classList.remove('n-over'));"
    " if (n && held) { e.preventDefault(); emit([held, n.dataset.node]); } }",
    "keydown": "(e) => { const n = e.target.closest('[data-node]'), box = e.currentTarget;"
    " const free = () => { delete box.dataset.held;"
    " box.querySelectorAll('.n-held').forEach((o) => o.classList.remove('n-held')); };"
    " if (e.key === 'Escape') free();"
    " if (!n || e.ctrlKey || e.metaKey || e.altKey || e.key.toLowerCase() !== 'm') return;"
    " e.preventDefault(); e.stopPropagation(); const held = box.dataset.held; free();"
    " if (!held) { box.dataset.held = n.dataset.node; n.classList.add('n-held'); }"
    " else if (held !== n.dataset.node) emit([held, n.dataset.node]); }",
}
"""What is dragged, or taken with the key m, and where it is put down: the server is told of both by their paths."""


def tree_editor(
    session: Session, name: str, tree: trees.Tree, counts: Mapping[str, int], take: Callable[[str, trees.Tree], None]
) -> None:
    """Show the tree with its actions; `take` gets the description of an edit and the new tree."""
    with div("n-row top").style("flex-wrap: nowrap; align-items: flex-start"):
        box = div("n-scroll n-grow n-tree").style("max-height: 420px; overflow: auto")
        with box:
            grown = _grown(session, name, tree, counts)
        with div("n-col").style("flex: 0 0 250px"):
            _actions(tree, box, grown, _Editor(take))


class _Editor:
    """Applies edits that give a valid hierarchy, and explains others."""

    def __init__(self, take: Callable[[str, trees.Tree], None]) -> None:
        self._take = take

    def act(
        self, words: str, paths: Sequence[trees.Path], change: Callable[[Sequence[trees.Path]], trees.Tree]
    ) -> None:
        if not paths:
            ui.notify(texts.TICK_FIRST, type="warning")
            return
        try:
            made = change(paths)
            Hierarchy.from_tree(made)
        except NorenError as error:
            say(error)
            return
        self._take(words, made)


def _grown(session: Session, name: str, tree: trees.Tree, counts: Mapping[str, int]) -> ui.tree:
    """Show the tree; expanded nodes stay expanded after an edit."""
    shown = trees.nodes(tree, counts)
    kept = session.kept.setdefault("folded out", {})
    first = [one["id"] for one in shown] if len(shown) < FEW_NODES else []

    def fold(event: events.ValueChangeEventArguments) -> None:
        kept[name] = list(event.value or [])

    grown = ui.tree(shown, tick_strategy="strict", on_expand=fold).props("dense no-transition")
    known = {trees.key_of(path) for path in inner(tree)}
    grown.props["expanded"] = [one for one in kept.get(name, first) if one in known]
    grown.add_slot("default-header", NODE)
    return grown


def _actions(tree: trees.Tree, box: ui.element, grown: ui.tree, editor: _Editor) -> None:
    label = ui.input(texts.NODE_NAME).props("outlined dense")
    keyed(label, trees.digest(tree))  # a name belongs to one edit
    under = {trees.key_of(path): visible(" / ".join(path)) for path in inner(tree)}
    target = ui.select(under, label=texts.MOVE_TO, with_input=True).props("outlined dense options-dense")

    def ticked() -> list[trees.Path]:
        return [trees.path_of(one) for one in grown.props.get("ticked", [])]

    def dropped(event: events.GenericEventArguments) -> None:
        held, onto = (trees.path_of(str(one)) for one in event.args)
        paths = ticked() if held in ticked() else [held]
        node = onto if isinstance(trees.inside(tree, onto), dict | list) else onto[:-1]
        editor.act(texts.moved(held[-1], node[-1]), paths, lambda p: _moved(tree, p, node))

    def move() -> None:
        chosen = target.value
        editor.act(texts.MOVE, ticked(), lambda p: _moved(tree, p, None if chosen is None else trees.path_of(chosen)))

    for event, handler in HANDLERS.items():
        box.on(event, dropped if "emit(" in handler else None, js_handler=handler)
    line(texts.TREE_HOW, "n-soft n-small")
    button(texts.MERGE, lambda: editor.act(texts.MERGE, ticked(), lambda p: trees.merged(tree, p, label.value or "")))
    rename: Change = lambda p: trees.renamed(tree, p[0], label.value or "")  # noqa: E731
    button(texts.RENAME, lambda: editor.act(texts.RENAME, ticked(), rename))
    button(texts.SPLIT, lambda: editor.act(texts.SPLIT, ticked(), lambda p: trees.dissolved(tree, p[0])))
    button(texts.MOVE, move)


def inner(tree: trees.Tree, at: trees.Path = ()) -> list[trees.Path]:
    """Return every possible target node."""
    out: list[trees.Path] = []
    for label, below in tree.items():
        out.append((*at, label))
        if isinstance(below, dict):
            out += inner(below, (*at, label))
    return out


def _moved(tree: trees.Tree, paths: Sequence[trees.Path], target: trees.Path | None) -> trees.Tree:
    if target is None:
        raise NorenError(texts.MOVE_WHERE, hint=texts.PICK_NODE)
    for path in paths:
        tree = trees.moved(tree, path, target)
    return tree
