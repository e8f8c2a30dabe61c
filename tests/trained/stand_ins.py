"""Stand-ins for the HTTP interfaces of hubs, on this machine."""

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from http.server import ThreadingHTTPServer
from urllib.parse import unquote

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Hub:
    """The models on a hub.

    Attributes:
        models: files by the name of their model.
        url: address of the server.
        page: what is answered to everything instead, such as a page of a proxy.
        asked: methods and paths of the requests so far.
    """

    def __init__(self) -> None:
        self.models: dict[str, dict[str, bytes]] = {}
        self.url = ""
        self.page: bytes | None = None
        self.asked: list[str] = []


class Handler(BaseHTTPRequestHandler):
    """Answers the requests of one hub."""

    protocol_version = "HTTP/1.1"
    hub: Hub

    def log_message(self, *arguments) -> None:
        pass

    def answer(self, body=b"", status=200, **headers) -> None:
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        self.send_response(status)
        headers.setdefault("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def handle_any(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        path = unquote(self.path.partition("?")[0])
        self.hub.asked.append(f"{self.command} {path}")
        if self.hub.page is not None:
            self.answer(self.hub.page, Content_Type="text/html")
        else:
            self.respond(path, body)

    do_GET = do_HEAD = do_POST = do_PUT = handle_any

    def respond(self, path: str, body: bytes) -> None:
        raise NotImplementedError


class HuggingFace(Handler):
    """The answers to downloads by huggingface_hub, and to uploads of small files."""

    def respond(self, path: str, body: bytes) -> None:
        parts = path.strip("/").split("/")
        is_api = parts[0] == "api"
        name = "/".join(parts[2:4] if is_api else parts[:2])
        files = self.hub.models.get(name)
        if path == "/api/repos/create":
            name = f"user/{json.loads(body)['name']}"
            self.hub.models.setdefault(name, {})
            self.answer({"url": f"{self.hub.url}/{name}"})
        elif path == "/api/validate-yaml":
            self.answer({"errors": [], "warnings": []})
        elif files is None:
            self.answer({"error": "none"}, 404, X_Error_Code="RepoNotFound")
        elif is_api:
            self.about(files, parts[4], parts[5], body)
        elif parts[-1] in files:
            content = files[parts[-1]]
            etag = hashlib.sha256(content).hexdigest()
            self.answer(content, ETag=f'"{etag}"', X_Repo_Commit=COMMIT)
        else:
            self.answer(b"", 404, X_Error_Code="EntryNotFound")

    def about(
        self, files: dict[str, bytes], action: str, revision: str, body: bytes
    ) -> None:
        """Answers what is asked about the files of a model."""
        if revision not in ("main", COMMIT):
            self.answer({"error": "none"}, 404, X_Error_Code="RevisionNotFound")
        elif action == "preupload":
            wanted = json.loads(body)["files"]
            how = {"uploadMode": "regular", "shouldIgnore": False}
            self.answer({"files": [{"path": file["path"], **how} for file in wanted]})
        elif action == "commit":
            for line in body.splitlines():
                entry = json.loads(line)
                if entry["key"] == "file":
                    value = entry["value"]
                    files[value["path"]] = base64.b64decode(value["content"])
            self.answer(
                {"commitOid": COMMIT, "commitUrl": f"{self.hub.url}/user/model"}
            )
        elif action == "tree":
            kind = {"type": "file", "oid": "0"}
            self.answer(
                [{"path": name, "size": len(x), **kind} for name, x in files.items()]
            )
        else:
            siblings = [{"rfilename": name} for name in files]
            self.answer({"id": "user/model", "sha": COMMIT, "siblings": siblings})


class Kaggle(Handler):
    """The answers to transfers by kagglehub; each model has version 2 only."""

    def respond(self, path: str, body: bytes) -> None:
        if self.command == "PUT":
            self.hub.models.setdefault("uploaded", {})[path.strip("/")] = body
            self.answer({})
            return
        asked, wanted = path.rpartition("/")[2], json.loads(body)
        files = self.hub.models.get(wanted.get("modelSlug", ""))
        if asked in ("CreateModel", "CreateModelInstance"):
            self.answer({"id": 1, "url": self.hub.url})
        elif asked == "StartBlobUpload":
            name = wanted["name"]
            self.answer({"token": name, "createUrl": f"{self.hub.url}/{name}"})
        elif files is None:
            self.answer({"code": 404, "message": "no such model"}, 404)
        elif asked == "DownloadModelInstanceVersion":
            content = files.get(wanted["path"])
            found = content is not None and wanted["versionNumber"] == 2
            self.answer(content if found else b"", 200 if found else 404)
        else:
            self.answer({"id": 1, "versionNumber": 2})


@contextmanager
def serving(handler: type[Handler]) -> Iterator[Hub]:
    """Context in which a hub answers on a port of this machine."""
    hub = Hub()
    bound = type("Bound", (handler,), {"hub": hub})
    server = ThreadingHTTPServer(("127.0.0.1", 0), bound)
    hub.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
