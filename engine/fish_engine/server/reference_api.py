"""`/v1/references/…`: the same stored voices, as the clients of fish-speech's own server manage them."""

import asyncio
from collections.abc import Mapping
from typing import Final

import ormsgpack
from fastapi import FastAPI, Request
from starlette.responses import JSONResponse, Response

from fish_engine.errors import BadRequest, UnknownVoice
from fish_engine.server.errors_http import error_response
from fish_engine.server.forms import read_form
from fish_engine.server.model_api import new_voice
from fish_engine.server.studio import Studio
from fish_engine.voices.library import Recording

_ROUTE: Final = "/v1/references"


def add_reference_routes(app: FastAPI, studio: Studio) -> None:
    """Add the routes that add, list, rename and delete."""
    library = studio.library

    @app.post(f"{_ROUTE}/add")
    async def add(request: Request) -> Response:
        form = await read_form(request, limit=studio.max_body_bytes)
        voice_id, recordings = form.needed_text("id"), form.files("audio")
        if len(recordings) != 1:
            raise BadRequest(f"audio: expected one file, found {len(recordings)}")
        voice = new_voice(voice_id, voice_id, [form.needed_text("text")])
        await asyncio.to_thread(studio.keep, voice, recordings)
        return _answer(request, {"message": f"added {voice_id}", "reference_id": voice_id})

    @app.get(f"{_ROUTE}/list")
    async def listed(request: Request) -> Response:
        ids = sorted(library.voices())
        return _answer(request, {"reference_ids": ids, "message": f"{len(ids)} references"})

    @app.delete(f"{_ROUTE}/delete")
    async def delete(request: Request) -> Response:
        voice_id = request.query_params.get("reference_id")
        if voice_id is None:
            voice_id = (await read_form(request, limit=studio.max_body_bytes)).needed_text("reference_id")
        try:
            library.delete(voice_id)
        except UnknownVoice as error:
            return error_response(request.url.path, error, status=404)
        return _answer(request, {"message": f"deleted {voice_id}", "reference_id": voice_id})

    @app.post(f"{_ROUTE}/update")
    async def rename(request: Request) -> Response:
        form = await read_form(request, limit=studio.max_body_bytes)
        old, new = form.needed_text("old_reference_id"), form.needed_text("new_reference_id")
        try:
            recordings: list[Recording] = library.recordings(old)
        except UnknownVoice as error:
            return error_response(request.url.path, error, status=404)
        library.add(new_voice(new, new, [each.text for each in recordings]), [each.audio for each in recordings])
        library.delete(old)
        return _answer(request, {"message": f"{old} is {new} now", "old_reference_id": old, "new_reference_id": new})


def _answer(request: Request, fields: Mapping[str, object]) -> Response:
    """Answer as that server does: msgpack, unless JSON is asked for."""
    body = {"success": True, **fields}
    accepted = request.headers.get("accept", "")
    if request.query_params.get("format") == "json" or ("json" in accepted and "msgpack" not in accepted):
        return JSONResponse(body)
    return Response(ormsgpack.packb(body), media_type="application/msgpack")
