"""The frame around every page: role, open files, undo and redo, steps."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

from fastapi import Request, Response
from nicegui import Client, app, events, ui

from noren.results import visible
from noren_studio import texts
from noren_studio.gate import FRAMED
from noren_studio.jobs import place_of
from noren_studio.pages import PAGES, Page
from noren_studio.parts import KEY, View, button, div, keep, line, note, refresh_others, text, title
from noren_studio.parts import refresh as refresh_page
from noren_studio.rebuild import Part, hear_in_order, hear_only, keyed
from noren_studio.session import Session, Sessions
from noren_studio.theme import style

NOT_TYPING = """(e) => {
  const at = document.activeElement, kinds = ["checkbox", "radio", "button", "range", "file"];
  const field = at && at.tagName === "INPUT" && !at.readOnly && !kinds.includes(at.type);
  if (!field && !(at && (at.tagName === "TEXTAREA" || at.isContentEditable))) emit(e);
}"""
"""Where a word is being typed, Ctrl-Z is the field's own; a menu that has the focus is no such field."""

SYSTEM = "system-look"
SYSTEM_LOOK = f"""
  const asked = matchMedia("(prefers-color-scheme: dark)"), tell = () => emitEvent("{SYSTEM}", asked.matches);
  if (!window.norenLook) {{ window.norenLook = asked; asked.addEventListener("change", tell); }}
  tell();
"""
"""The look that the system asks for, when a page is there and whenever it changes."""

SHOWN_LOOK = "() => emit(document.body.classList.contains('body--dark'))"
"""A click tells the look that is seen, so that nothing has to be asked back."""


MARKS = {"done": "✓", "problem": "!"}
"""What stands in the place of a step's number."""


def register(sessions: Sessions) -> None:
    """Register the address of every page."""

    def of(request: Request) -> Session:
        found = sessions.get(request.state.noren_session)
        assert found is not None  # the gate let nobody in without one
        return found

    def start(request: Request) -> None:
        _framed(sessions, of(request), None)

    ui.page("/")(start)
    for page in PAGES:

        def show(request: Request, page: Page = page) -> None:
            _framed(sessions, of(request), page)

        ui.page(page.path)(show)

    async def framed(request: Request, name: str) -> Response:
        page = of(request).kept.get("framed", {}).get(name)
        if page is None:
            return Response(status_code=404)
        return Response(page.read_bytes(), media_type="text/html")

    app.add_api_route(FRAMED + "{name}", framed, methods=["GET"], include_in_schema=False)


def _framed(sessions: Sessions, session: Session, page: Page | None) -> None:
    """Build one page with its frame."""
    client = ui.context.client
    session.clients.add(client.id)
    client.on_delete(lambda: session.clients.discard(client.id))
    hear_in_order(client)
    ui.on_exception(_fault)
    ui.add_css(style())
    heading = texts.TITLE if page is None else f"{texts.PAGES[page.name][0]} - {texts.TITLE}"
    ui.page_title(heading)
    dark = ui.dark_mode(session.look)
    ui.on(SYSTEM, partial(_system_look, session))
    client.on_connect(lambda: ui.run_javascript(SYSTEM_LOOK))
    skip = ui.link(texts.SKIP, "#content").classes("n-skip")
    skip.props("tabindex=0")

    parts: dict[str, Part] = {}

    def frame() -> None:
        for name, part in parts.items():
            if name != "content":
                part.refresh()

    def refresh(afresh: bool = False) -> None:
        frame()
        if "content" in parts:  # else it is being built, and shows by itself what it changed
            parts["content"].refresh(afresh=afresh)

    def others() -> list[View]:
        pages = (Client.instances.get(one) for one in session.clients if one != client.id)
        return [found.storage[KEY] for found in pages if found is not None and KEY in found.storage]

    keep(View(refresh, frame, others, parts))
    again = partial(refresh, afresh=True)
    with ui.element("header").classes("n-head"):
        parts["head"] = Part(_head, sessions, session, dark, again)
    with div("n-body"):
        with ui.element("nav").classes("n-rail").props(f'aria-label="{texts.TITLE}"'):
            parts["rail"] = Part(_rail, session, page)
        with div("n-main").props("id=content tabindex=-1"):
            parts["content"] = Part(_content, session, page)
    keys = ui.keyboard(partial(_keys, session, again), ignore=[])
    hear_only(keys, NOT_TYPING)


def _fault(error: Exception) -> None:
    """Show a fault of a page by its kind and place only; edits are kept."""
    ui.notify(texts.fault(type(error).__name__, place_of(error)), type="negative", timeout=0, close_button=True)


def _content(session: Session, page: Page | None) -> None:
    if page is None:
        _start(session)
        return
    name, says = texts.PAGES[page.name]
    with div("n-col tight"):
        title(name, 1)
        line(says, "n-why")
    if page.of_table and not session.draft.opened:
        note(texts.FIRST_OPEN)
        ui.link(texts.OPEN_TABLE, "/table")
        return
    _tour(session, page)
    page.build(session)


def _tour(session: Session, page: Page) -> None:
    """Show the tour's explanation of this page."""
    if not session.kept.get("tour") or page.name not in texts.TOUR:
        return

    def end() -> None:
        session.kept.pop("tour")
        refresh_page()

    names = list(texts.TOUR)
    at = names.index(page.name) + 1
    with div("n-note n-row").props("role=note data-tour"):
        line(f"{at}/{len(names)}  {texts.TOUR[page.name]}", "n-grow")
        if at < len(names) and session.draft.opened:
            button(texts.TOUR_NEXT, partial(ui.navigate.to, f"/{names[at]}"))
        button(texts.TOUR_END, end, "plain")


def _start(session: Session) -> None:
    with div("n-col tight"):
        title(texts.START_TITLE, 1)
        line(texts.START_LEAD, "n-why")
    with div("n-row alike even"):
        for side, (heading, says, action) in texts.START.items():
            path = next(page.path for page in PAGES if page.side == side)
            with ui.element("section").classes("n-card"):
                title(heading)
                line(says, "n-soft")
                button(action, partial(ui.navigate.to, path), "main")

    def tour() -> None:
        session.kept["tour"], session.kept["demo asked"] = True, True
        ui.navigate.to("/table")

    with div("n-row"):
        button(texts.TOUR_GO, tour)
        line(texts.TOUR_SAYS, "n-soft")


def _head(sessions: Sessions, session: Session, dark: ui.dark_mode, refresh: Callable[[], None]) -> None:
    ui.element("div").classes("n-mark").props("aria-hidden=true")
    ui.link(texts.TITLE, "/").classes("n-brand")
    line(session.draft.name, "n-of n-grow n-wrap")
    undoes, redoes = session.history.undoes, session.history.redoes
    _icon("undo", texts.UNDO, undoes, partial(_undo, session, refresh))
    _icon("redo", texts.REDO, redoes, partial(_redo, session, refresh))
    look = _icon("contrast", texts.LIGHT_OR_DARK, "", None)
    look.on("click", partial(_look, session, dark), js_handler=SHOWN_LOOK)
    with _icon("more_vert", texts.MENU, "", lambda: None), ui.menu():
        ui.menu_item(texts.SAVE_SESSION, partial(_save, session)).props("" if session.draft.opened else "disable")
        ui.menu_item(texts.END_SESSION, partial(_end, sessions, session))


def _icon(icon: str, label: str, what: str | None, act: Callable[[], Any] | None) -> ui.button:
    """Show a button of the head; without `what` it is disabled."""
    found = ui.button(icon=icon, on_click=act, color=None).props("flat round dense")
    keyed(found, icon).props["aria-label"] = visible(f"{label}: {what}" if what else label)
    found.set_enabled(what is not None)
    with found:
        ui.tooltip(visible(f"{label}: {what}" if what else label))
    return found


def _undo(session: Session, refresh: Callable[[], None]) -> None:
    words = session.history.undoes
    if session.history.undo():
        ui.notify(visible(texts.undid(words or "")))
        refresh()
        refresh_others()


def _redo(session: Session, refresh: Callable[[], None]) -> None:
    words = session.history.redoes
    if session.history.redo():
        ui.notify(visible(texts.redid(words or "")))
        refresh()
        refresh_others()


def _keys(session: Session, refresh: Callable[[], None], event: Any) -> None:
    """Handle Ctrl-Z and Ctrl-Y."""
    if not event.action.keydown or not (event.modifiers.ctrl or event.modifiers.meta):
        return
    key = str(event.key.name).lower()
    if key == "z" and not event.modifiers.shift:
        _undo(session, refresh)
    elif key in ("y", "z"):
        _redo(session, refresh)


def _system_look(session: Session, event: events.GenericEventArguments) -> None:
    """Ask the browser for the system's look, which charts need."""
    before, session.system_dark = session.dark, bool(event.args)
    if session.dark != before:
        refresh_page()


def _look(session: Session, dark: ui.dark_mode, event: events.GenericEventArguments) -> None:
    """Switch to the other look; if it is the system's, pages follow the system again."""
    wanted = not event.args
    session.look = None if wanted == session.system_dark else wanted
    dark.set_value(session.look)
    refresh_page()


def _save(session: Session) -> None:
    from noren_studio.files import save_dialog

    save_dialog(session)


def _end(sessions: Sessions, session: Session) -> None:
    with ui.dialog() as dialog, ui.card():
        line(texts.END_CONFIRM)
        with div("n-row"):
            button(texts.KEEP, dialog.close)

            def end() -> None:
                sessions.end(session)
                dialog.close()
                ui.notify(texts.ENDED, timeout=0)

            button(texts.END_SESSION, end, "bad")
    dialog.open()


def _rail(session: Session, here: Page | None) -> None:
    """Show the steps of the holder, and links for recipient and auditor."""
    names = {"holder": texts.HOLDER, "recipient": texts.RECIPIENT, "auditor": texts.AUDITOR}
    number = 0
    for side, group in names.items():
        line(group, "n-group")
        for page in (one for one in PAGES if one.side == side):
            number += 1
            closed = page.of_table and not session.draft.opened
            state = step_state(session, page.name)
            classes = ["n-step", "on" if page == here else "", state, "off" if closed else ""]
            link = ui.link(target=page.path).classes(" ".join(filter(None, classes)))
            if page == here:
                link.props("aria-current=page")
            if closed:
                link.props("aria-disabled=true tabindex=-1")
            with link:
                if side == "holder":
                    dot = text(MARKS.get(state, number), "n-dot")
                    if state:
                        dot.props("role=img")
                        dot.props["title"] = dot.props["aria-label"] = texts.STATES[state]
                else:
                    ui.icon("visibility" if side == "auditor" else "table_chart", size="22px")
                line(texts.PAGES[page.name][0])


def step_state(session: Session, name: str) -> Literal["", "drafted", "done", "problem"]:
    """Return the state of a step; done means accepted and without problems."""
    places = {"columns": ("attributes", "people", "together"), "requirements": ("require", "dependence")}
    policy = session.draft.policy
    if not session.draft.opened:
        return ""
    if session.rules.about(*places.get(name, ())):
        return "problem"
    if name == "columns":
        return "drafted" if any(map(session.is_drafted, policy["attributes"])) else "done"
    if name == "requirements":
        return "" if not policy.get("require") else "drafted" if session.drafted_requirements() else "done"
    if name == "choose":
        return "done" if session.kept.get("chosen") == policy.get("method") else "drafted"
    return "done" if name == "table" or session.is_fresh("release") else ""
