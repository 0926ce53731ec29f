"""An adapter that misbehaves: the first argument says how, from the first case on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

MODE = sys.argv[1]
STATE = Path(sys.argv[2]) if len(sys.argv) > 2 else None
ASKED: list[int] = []
RIGHT = {"ok": True, "batches": [], "consumed": 0, "tail": None}
FEATURES = {"magic": [0, 1, 2], "codec": ["none"], "batchMeta": True, "partialTail": True, "control": "surfaced"}
HELLO = {
    "ok": True,
    "protocol": 1,
    "implementation": {"name": "hostile", "version": "1", "language": "Python"},
    "ops": ["decode"],
    "features": FEATURES,
}
SLEEPER = [sys.executable, "-c", "import time; time.sleep(600)"]


def write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def answer(seq: int, content: dict[str, object]) -> None:
    write(json.dumps({"seq": seq, **content}) + "\n")


def fork_and(then: str, *, leaves_session: bool) -> None:
    child = subprocess.Popen(SLEEPER, start_new_session=leaves_session)
    assert STATE is not None
    STATE.write_text(str(child.pid), encoding="ascii")
    if then == "exit":
        os._exit(3)
    if then == "hang":
        time.sleep(600)


def misbehave(seq: int) -> None:  # noqa: C901, PLR0912, PLR0915 - a list of bad manners
    match MODE:
        case "abort":
            sys.stderr.write("assertion failed: length >= 0\n")
            sys.stderr.flush()
            os.abort()
        case "exit":
            os._exit(0)
        case "kill":
            os.kill(os.getpid(), signal.SIGSEGV)
        case "hang":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(600)
        case "half-line":
            write('{"seq":')
            time.sleep(600)
        case "spin":
            while True:
                pass
        case "eat":
            data = []
            while True:
                data.append(bytearray(os.urandom(1)) * (16 << 20))
        case "eat-and-answer":
            data = bytearray(b"x") * (160 << 20)
            del data
            answer(seq, RIGHT)
        case "ask-too-much":
            bytearray(200 << 30)
        case "garbage":
            write("Hello, I am a library that prints.\n")
            answer(seq, RIGHT)
        case "binary":
            sys.stdout.buffer.write(b"\xff\xfe\x00\n")
            sys.stdout.buffer.flush()
        case "nested":
            write("[" * 200_000 + "\n")
        case "no-object":
            write("[1, 2]\n")
        case "nothing-said":
            write(json.dumps({"seq": seq}) + "\n")
        case "other-seq":
            answer(seq + 7, RIGHT)
        case "twice":
            answer(seq, RIGHT)
            answer(seq, RIGHT)
        case "swapped":
            answer(seq + 1, RIGHT)
            answer(seq, RIGHT)
        case "close":
            os.close(1)
            time.sleep(600)
        case "endless":
            while True:
                write('{"seq": 1, "batches": [' + "0," * 100_000)
        case "pour":
            while True:
                sys.stderr.write("noise " * 10_000)
        case "pour-and-answer":
            sys.stderr.write("noise " * 200_000)
            sys.stderr.flush()
            answer(seq, RIGHT)
        case "fork":
            fork_and("answer", leaves_session=False)
            answer(seq, RIGHT)
        case "fork-and-exit":
            fork_and("exit", leaves_session=False)
        case "fork-away":
            fork_and("hang", leaves_session=True)
        case "once":
            assert STATE is not None
            if not STATE.exists():
                STATE.touch()
                os.abort()
            answer(seq, RIGHT)
        case "tired":
            answer(seq, {**RIGHT, "consumed": 1} if ASKED else RIGHT)
            ASKED.append(seq)
        case "shape":
            answer(seq, {"ok": True, "batches": [3], "consumed": 0, "tail": None})
        case "error":
            answer(seq, {"error": {"message": "my own fault"}})
        case "skip":
            answer(seq, {"skip": {"reason": "not today", "issue": "https://example.org/1"}})
        case "wrong":
            answer(seq, {**RIGHT, "consumed": 1})
        case "refuse":
            answer(seq, {"ok": False, "reject": {"class": "crc", "message": "no"}, "batches": []})
        case _:
            answer(seq, RIGHT)


def main() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        if request["op"] == "hello":
            if MODE == "silent":
                time.sleep(600)
            answer(request["seq"], {**HELLO, "protocol": 2} if MODE == "other-protocol" else HELLO)
        elif request["op"] == "stop":
            return
        else:
            misbehave(request["seq"])


if MODE == "deaf":
    answer(0, HELLO)
    time.sleep(600)
main()
