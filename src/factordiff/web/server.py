"""The application: a few JSON addresses and the page."""

# Annotations are evaluated here on purpose: FastAPI reads them, and it is imported inside the function.

from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from factordiff.errors import FactorDiffError, MissingDependency
from factordiff.text.windows import LENGTH
from factordiff.web.about import about_server, about_texts, fitting_methods
from factordiff.web.endpoint import RunEndpoint
from factordiff.web.infilling import asked_infill
from factordiff.web.library import Library
from factordiff.web.limits import API_VERSION, Limits
from factordiff.web.middleware import Protected, refusal
from factordiff.web.registry import ExpertRegistry, text_experts, text_names
from factordiff.web.schema import api_schema, infill_schema, request_schema, tell_schema
from factordiff.web.site import STATIC
from factordiff.web.solving import asked_solve
from factordiff.web.story_list import stories_for
from factordiff.web.telling import asked_story
from factordiff.web.worker import Worker

PREFIX = f"/api/v{API_VERSION}"


def build_server(
    registry: ExpertRegistry,
    limits: Limits | None = None,
    *,
    hosts: tuple[str, ...] | None = None,
    library: Library | None = None,
    on_fault: Callable[[Exception], None] | None = None,
) -> Protected:
    """The ASGI application for these experts; `hosts` are the names it answers to (None: any)."""
    try:
        from fastapi import FastAPI, Response
        from fastapi.exceptions import RequestValidationError
        from fastapi.responses import JSONResponse
        from fastapi.staticfiles import StaticFiles
        from starlette.exceptions import HTTPException
        from starlette.routing import Route
    except ImportError as error:
        raise MissingDependency(
            "fastapi: the playground needs it; install factordiff[web] (pip install 'factordiff[web]')"
        ) from error

    bounds, tasks = limits or Limits(), library or Library()
    worker = Worker(bounds.queue, on_fault)
    under_way: Counter[str] = Counter()
    solving = RunEndpoint(worker, bounds, lambda body: asked_solve(body, registry, bounds), under_way)

    def readers() -> ExpertRegistry:
        return text_experts(registry.device)

    infilling = RunEndpoint(
        worker, bounds, lambda body: asked_infill(body, text_names(), readers, bounds), under_way
    )
    telling = RunEndpoint(worker, bounds, lambda body: asked_story(body, registry, tasks, bounds), under_way)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        worker.close()

    app = FastAPI(
        title="FactorDiff playground",
        version=str(API_VERSION),
        openapi_url=f"{PREFIX}/openapi.json",
        docs_url=None,  # its page would load scripts from another host
        redoc_url=None,
        lifespan=lifespan,
    )

    def sentence(status: int, reason: str) -> Response:
        return Response(refusal(status, reason), status, media_type="application/json")

    @app.get(f"{PREFIX}/about")
    def about() -> dict[str, Any]:
        """What this server has: experts, methods, factors, reveal rules, limits."""
        return about_server(registry, bounds)

    @app.get(f"{PREFIX}/methods")
    def methods(experts: str) -> Response:
        """Which methods take these experts (names joined by commas); a reason where one does not."""
        names = experts.split(",")
        try:
            if set(names) <= set(text_names()):
                found = fitting_methods(readers(), names, (1, LENGTH))
            else:
                found = fitting_methods(registry, names)
        except FactorDiffError as error:
            return sentence(404, str(error))
        return JSONResponse({"version": API_VERSION, "methods": found})

    @app.get(f"{PREFIX}/texts")
    def texts() -> dict[str, Any]:
        """What there is for texts: experts, methods, letters, passages to begin with."""
        return about_texts(readers(), bounds)

    @app.get(f"{PREFIX}/schema")
    def schema() -> dict[str, Any]:
        """The JSON schema of requests and events."""
        return api_schema(bounds)

    @app.get(f"{PREFIX}/health")
    def health() -> dict[str, Any]:
        """How busy the server is."""
        return {"version": API_VERSION, "waiting": len(worker.waiting), "busy": worker.running is not None}

    @app.get(f"{PREFIX}/tasks")
    def listing() -> dict[str, Any]:
        """The tasks there are, each with a preview."""
        return {"version": API_VERSION, "tasks": tasks.listing}

    @app.get(f"{PREFIX}/tasks/{{task_id}}")
    def one_task(task_id: str, source: str = "rearc", number: int = 0) -> Response:
        """One task as ARC's JSON spells it."""
        try:
            found = tasks.task(task_id, source, number)
        except FactorDiffError as error:
            return sentence(404, str(error))
        return JSONResponse(
            {"version": API_VERSION, "id": task_id, "source": source, "number": number, "task": found}
        )

    @app.get(f"{PREFIX}/stories")
    def stories() -> dict[str, Any]:
        """What the first screen shows: stories that these experts can tell."""
        told = stories_for(registry, tasks)
        return {"version": API_VERSION, "known_tasks": len(tasks.listing), "stories": told}

    @app.exception_handler(HTTPException)
    def refused(_: Any, error: HTTPException) -> Response:
        reason = {404: "there is nothing at this address", 405: "this address does not take this method"}
        return sentence(error.status_code, reason.get(error.status_code, str(error.detail)))

    @app.exception_handler(RequestValidationError)
    def not_valid(_: Any, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        return sentence(422, f"{first['loc'][-1]}: {first['msg']}")

    app.router.routes.append(Route(f"{PREFIX}/solve", solving))
    app.router.routes.append(Route(f"{PREFIX}/infill", infilling))
    app.router.routes.append(Route(f"{PREFIX}/tell", telling))
    app.mount("/", StaticFiles(directory=STATIC, html=True))
    _describe_runs(app, bounds)
    app.state.worker = worker
    return Protected(app, hosts, on_stop=worker.stop)


def _describe_runs(app: Any, limits: Limits) -> None:
    """Enter what streams runs into the OpenAPI document: it is plain ASGI, so FastAPI cannot see its body."""
    generate = app.openapi
    asked = {
        "solve": ("Solve one test input", request_schema(limits)),
        "infill": ("Fill in what is hidden of a text", infill_schema(limits)),
        "tell": ("One run of a story", tell_schema()),
    }

    def openapi() -> dict[str, Any]:
        document: dict[str, Any] = generate()
        statuses = {status: {"description": text} for status, text in api_schema(limits)["statuses"].items()}
        lines = f"application/x-ndjson; each line as in {PREFIX}/schema, solve.events"
        for name, (summary, schema) in asked.items():
            described = {
                "summary": f"{summary}; events as lines of JSON, or one object at the end",
                "requestBody": {"required": True, "content": {"application/json": {"schema": schema}}},
                "responses": statuses | {"200": {"description": lines}},
            }
            document["paths"].setdefault(f"{PREFIX}/{name}", {"post": described})
        return document

    app.openapi = openapi
