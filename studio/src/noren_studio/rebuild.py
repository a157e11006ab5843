"""Rebuilds a part of a page and keeps elements that still exist, so that no click or typed word is lost.

Building anew makes new elements. Those that are what an old one was take over its number and the numbers of its
listeners. So the browser keeps what it has drawn and changes only what differs: the pointer may go down before and up
after it, a menu stays open, a field keeps its focus; and an event that was on its way reaches the successor.
What an element does depends on its label or key, so nothing is taken for something else that stands in its place.
An event that comes between an edit and the page after it waits for that page: what it was meant for may be gone.

NiceGUI has no way of its own for this. What is used of its inside is used in this module alone, and a test names it.
"""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from nicegui import Client, app, background_tasks, ui
from nicegui.element import Element
from nicegui.elements.mixins.value_element import _NO_CLIENT_VALUE, ValueElement
from nicegui.functions.refreshable import RefreshableContainer

FRESH = (ui.upload, ui.timer, ui.dialog)
"""Elements that know their own number from the start, or that end with what they belong to."""
THEIRS = (ui.input, ui.number, ui.expansion, ui.menu)
"""Elements whose state is the user's until it is taken: half a word, what is folded out."""
ROWS = ("tr", "q-item")
"""Elements that are what stands in them."""
NAMES = ("label", "aria-label", "icon", "href")


def keyed(element: Element, key: Hashable) -> Element:
    """Set the identity of an element, by which it is matched after a rebuild."""
    element._noren_key = key  # type: ignore[attr-defined]
    return element


@dataclass(frozen=True)
class Was:
    """What is kept of a removed element."""

    number: int
    listeners: Sequence[tuple[str, str]]
    slots: Mapping[str, Sequence[tuple[Hashable, Was]]]
    state: tuple[Any, Any, Any] | None
    """Of an element with a value: the one it was built with, the present one, and what the browser has."""


class Part:
    """A part of the page made by `build`, now and whenever `refresh` is called."""

    def __init__(self, build: Callable[..., None], *given: Any) -> None:
        self._build, self._given = build, given
        self._afresh = False
        self.box = RefreshableContainer()
        self._run()

    def refresh(self, *given: Any, afresh: bool = False) -> None:
        """Rebuild it, once for all requests at the same time. `afresh` discards text that was typed but not applied."""
        self._given = given or self._given
        if self.box.is_deleted:
            return
        self._afresh = self._afresh or afresh
        client = self.box.client
        waiting = WAITING.setdefault(client, [])
        if self not in waiting:
            waiting.append(self)
            background_tasks.create(_later(client), name="studio: build a page anew")

    def rebuild(self) -> None:
        if self.box.is_deleted:
            return
        before, afresh, self._afresh = _noted(self.box), self._afresh, False
        self.box.clear()
        try:
            self._run()
        finally:
            _Heirs(afresh).take(self.box, before)

    def _run(self) -> None:
        with self.box:
            self._build(*self._given)
        for one in self.box.descendants():
            if isinstance(one, ValueElement):
                vars(one).setdefault("_noren_first", one.value)


WAITING: WeakKeyDictionary[Client, list[Part]] = WeakKeyDictionary()
"""Parts of a page that are to be built anew, in the order in which they asked."""


async def _later(client: Client) -> None:
    settle(client)


def settle(client: Client) -> None:
    """Rebuild the waiting parts."""
    waiting = WAITING.get(client, [])
    while waiting:
        waiting.pop(0).rebuild()


def hear_in_order(client: Client) -> None:
    """Handle each event of a page only after the changes of the previous one are on the page."""
    handle = client.handle_event

    def hear(message: dict[str, Any]) -> None:
        try:
            settle(client)
        except Exception as error:
            app.handle_exception(error)
        handle(message)

    client.handle_event = hear  # type: ignore[assignment,method-assign]


def hear_only(element: Element, js_handler: str) -> None:
    """Send an element's events to the server only if a function in the browser emits them."""
    for listener in element._event_listeners.values():
        listener.js_handler = js_handler


def _noted(element: Element) -> Was:
    slots = {name: [(identity(one), _noted(one)) for one in slot.children] for name, slot in element.slots.items()}
    listeners = [(one.type, one.id) for one in element._event_listeners.values()]
    state = None
    if isinstance(element, ValueElement):
        state = vars(element).get("_noren_first", element.value), element.value, element._client_value
    return Was(element.id, listeners, slots, state)


class _Heirs:
    """New elements that take over the identifiers of old ones."""

    def __init__(self, afresh: bool) -> None:
        self._afresh = afresh

    def take(self, element: Element, was: Was) -> None:
        """Take over the state of all matched elements."""
        for name, slot in element.slots.items():
            left: defaultdict[Hashable, deque[Was]] = defaultdict(deque)
            for what, one in was.slots.get(name, ()):
                left[what].append(one)
            for child in slot.children:
                old = left[identity(child)]
                if old and self._inherits(child, old[0]):
                    self.take(child, old.popleft())

    def _inherits(self, element: Element, was: Was) -> bool:
        listeners = list(element._event_listeners.values())
        if isinstance(element, FRESH) or [one.type for one in listeners] != [kind for kind, _ in was.listeners]:
            return False
        if isinstance(element, ValueElement) and not self._keeps(element, was):
            return False
        client, number = element.client, element.id
        client.elements.pop(number, None)
        client.outbox.updates.pop(number, None)
        for name in [name for name, value in element._props.items() if value == f"c{number}"]:
            dict.__setitem__(element._props, name, f"c{was.number}")
        element.id = was.number
        client.elements[element.id] = element
        for listener, (_, known) in zip(listeners, was.listeners, strict=True):
            listener.id, listener.element_id = known, element.id
        element._event_listeners = {one.id: one for one in listeners}
        client.outbox.enqueue_update(element)
        return True

    def _keeps(self, element: ValueElement[Any], was: Was) -> bool:
        """Return whether the browser may keep what it shows; the user's state is taken over."""
        if was.state is None:
            return False
        first, last, shown = was.state
        if element.value != last:
            if self._afresh or not isinstance(element, THEIRS) or element.value != first:
                return False
            handlers, element._change_handlers = element._change_handlers, []
            element.value = last
            element._change_handlers = handlers
        if shown is _NO_CLIENT_VALUE and element.LOOPBACK is False and last == first:
            shown = element._props[element.VALUE_PROP]  # the first letter may be on its way
        element._client_value = shown
        return True


def identity(element: Element) -> Hashable:
    """Return the identity of an element: its kind, its name or key, and for rows and controls without a name their
    text."""
    kind = (type(element).__name__, element.tag)
    key = getattr(element, "_noren_key", None)
    if key is not None:
        return (*kind, key)
    props = element._props
    named = [json.dumps(props[name], default=str) for name in props if name in NAMES or name.startswith("data-")]
    acts = bool(element._event_listeners)
    if element.tag in ROWS or (acts and not named and not isinstance(element, ValueElement)):
        return (*kind, *named, *_words(element))
    return (*kind, *named, (element._text or "") if acts else "")


def _words(element: Element) -> Iterator[str]:
    for one in element.descendants(include_self=True):
        if one._text:
            yield one._text
