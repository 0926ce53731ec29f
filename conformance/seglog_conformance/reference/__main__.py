"""The main program of the reference's adapter."""

from __future__ import annotations

from seglog_conformance.reference.testee import Reference
from seglog_conformance.serving import serve

if __name__ == "__main__":
    serve(Reference())
