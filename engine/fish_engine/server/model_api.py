"""`/model`: voices as Fish Audio's clients make, list, change and delete them."""

import asyncio
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from fastapi import FastAPI, Request
from starlette.responses import JSONResponse, Response

from fish_engine.errors import BadRequest, UnknownVoice
from fish_engine.server.errors_http import error_response
from fish_engine.server.forms import Form, read_form
from fish_engine.server.studio import Studio
from fish_engine.voices.library import Voice

_ROUTE: Final = "/model"
_MAX_PAGE: Final = 100
_MAX_RECORDINGS: Final = 20
_VISIBILITIES: Final = ("public", "unlist", "private")
_NOBODY: Final = {"_id": "local", "nickname": "local", "avatar": ""}


def add_model_routes(app: FastAPI, studio: Studio) -> None:
    """Add the routes of stored voices."""
    library = studio.library

    @app.get(_ROUTE)
    async def listed(request: Request) -> Response:
        query = request.query_params
        chosen = _chosen(library.voices().values(), query.get("title"), query.getlist("tag"))
        size, number = (
            _count(query.get("page_size"), "page_size", 10, _MAX_PAGE),
            _count(query.get("page_number"), "page_number", 1),
        )
        page = chosen[(number - 1) * size : number * size]
        return JSONResponse({"total": len(chosen), "items": [_model(voice) for voice in page]})

    @app.post(_ROUTE)
    async def create(request: Request) -> Response:
        form = await read_form(request, limit=studio.max_body_bytes)
        recordings, voice = form.files("voices"), _new_voice(form)
        await asyncio.to_thread(studio.keep, voice, recordings)
        return JSONResponse(_model(voice), status_code=201)

    @app.get(_ROUTE + "/{voice_id}")
    async def one(request: Request, voice_id: str) -> Response:
        return _answer(request, lambda: _model(library.voice(voice_id)))

    @app.patch(_ROUTE + "/{voice_id}")
    async def change(request: Request, voice_id: str) -> Response:
        form = await read_form(request, limit=studio.max_body_bytes)

        def changed() -> Mapping[str, object]:
            voice = _changed(library.voice(voice_id), form)
            library.change(voice)
            return _model(voice)

        return _answer(request, changed)

    @app.delete(_ROUTE + "/{voice_id}")
    async def delete(request: Request, voice_id: str) -> Response:
        def deleted() -> Mapping[str, object]:
            library.delete(voice_id)
            return {"status": 200, "message": "deleted"}

        return _answer(request, deleted)


def now_iso() -> str:
    """Return the time as voices have it."""
    return datetime.now(UTC).isoformat()


def new_voice(voice_id: str, title: str, texts: Sequence[str]) -> Voice:
    """Return a voice that is made now."""
    now = now_iso()
    return Voice(voice_id=voice_id, title=title, texts=tuple(texts), created_at=now, updated_at=now)


def _answer(request: Request, act: Callable[[], Mapping[str, object]]) -> Response:
    try:
        return JSONResponse(act())
    except UnknownVoice as error:
        return error_response(request.url.path, error, status=404)


def _new_voice(form: Form) -> Voice:
    count = len(form.files("voices"))
    if not 1 <= count <= _MAX_RECORDINGS:
        raise BadRequest(f"voices: expected 1 to {_MAX_RECORDINGS} files, found {count}")
    texts = form.texts("texts")
    if len(texts) != count:
        raise BadRequest(
            f"texts: expected one for each of the {count} voices, found {len(texts)}; this server writes none itself"
        )
    return _changed(new_voice(uuid.uuid4().hex, form.needed_text("title"), texts), form)


def _changed(voice: Voice, form: Form) -> Voice:
    """Return the voice with what the form says of it."""
    visibility = form.text("visibility") or voice.visibility
    if visibility not in _VISIBILITIES:
        raise BadRequest(f"visibility: expected one of: {', '.join(_VISIBILITIES)}, found {visibility!r}")
    description = form.text("description")
    return replace(
        voice,
        title=form.text("title") or voice.title,
        description=voice.description if description is None else description,
        tags=tuple(form.texts("tags")) or voice.tags,
        visibility=visibility,
        updated_at=now_iso(),
    )


def _chosen(voices: Iterable[Voice], title: str | None, tags: Sequence[str]) -> list[Voice]:
    """Return the voices that are looked for, the newest first."""
    fitting = (
        voice for voice in voices if (title or "").lower() in voice.title.lower() and set(tags) <= set(voice.tags)
    )
    return sorted(fitting, key=lambda voice: voice.created_at, reverse=True)


def _count(given: str | None, name: str, default: int, most: int = 1_000_000) -> int:
    if given is None:
        return default
    if not given.isascii() or not given.isdigit() or not 1 <= int(given[:9]) <= most:
        raise BadRequest(f"{name}: expected a number from 1 to {most}, found {given[:20]!r}")
    return int(given)


def _model(voice: Voice) -> dict[str, object]:
    """Return a voice with all the fields without which clients do not take it for one."""
    samples = [
        {"title": f"Sample {index}", "text": text, "task_id": "", "audio": ""}
        for index, text in enumerate(voice.texts, 1)
    ]
    counts = dict.fromkeys(("like_count", "mark_count", "shared_count", "task_count"), 0)
    flags = dict.fromkeys(("lock_visibility", "liked", "marked"), False)
    return {
        "_id": voice.voice_id,
        "type": "tts",
        "title": voice.title,
        "description": voice.description,
        "cover_image": "",
        "train_mode": "fast",
        "state": "trained",
        "tags": list(voice.tags),
        "samples": samples,
        "created_at": voice.created_at,
        "updated_at": voice.updated_at,
        "languages": [],
        "visibility": voice.visibility,
        "author": _NOBODY,
        **counts,
        **flags,
    }
