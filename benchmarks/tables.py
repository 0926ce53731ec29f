"""Tables of the results, as readable text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Say = Callable[[str], None]

WIDTH: Final = 34


def say_rows(title: str, rows: Sequence[Mapping[str, Any]], say: Say) -> None:
    """Print a line for each contender, with a column for each set."""
    if not rows:
        return
    sets = list(dict.fromkeys(row["data"] for row in rows))
    known = {(row["contender"], row["data"]): row for row in rows}
    unit = "lookups/s" if any("lookupsPerSecond" in row for row in rows) else "MB/s"
    say(f"\n{title}, {unit}, median pass")
    say(f"  {'':{WIDTH}}" + "".join(f"{name:>11}" for name in sets))
    notes: set[str] = set()
    for name in dict.fromkeys(row["contender"] for row in rows):
        cells = [known.get((name, each), {}) for each in sets]
        say(f"  {name:{WIDTH}}" + "".join(f"{_cell(cell):>11}" for cell in cells))
        notes |= {f"{name}: {cell['note']}" for cell in cells if "note" in cell}
    for note in sorted(notes):
        say(f"  - {note[:160]}")


def _cell(row: Mapping[str, Any]) -> str:
    speed = row.get("megabytesPerSecond", row.get("lookupsPerSecond"))
    if speed is None:
        return "not built" if row.get("note") == "not built" else "-"
    return f"{speed:,.0f}" + ("" if row.get("agrees", True) else " WRONG")


def say_limits(limits: Mapping[str, Any], say: Say) -> None:
    """Print the fastest way for each limit, and all ways."""
    say("\nlimits, MB/s of log")
    for kind, ways in {**limits["megabytesPerSecond"], **limits["codecs"]}.items():
        named = ", ".join(f"{name} {speed:,.0f}" for name, speed in ways.items() if name != "best")
        say(f"  {kind:10}{ways['best']:10,.0f}   {named}")
    for name, gain in limits["twoCores"].items():
        say(f"  two processes sharing {name}: {gain['times']:.2f} times one")


def say_ratios(rows: Sequence[Mapping[str, Any]], say: Say) -> None:
    """Print a line for each target."""
    if rows:
        say("\nratios to the best of others")
    for row in rows:
        asked = f"<= {row['atMost']}" if "atMost" in row else f">= {row['atLeast']}"
        start = f"  {row['title']:51}{row['data']:17}{asked:>8}"
        if "ratio" not in row:
            say(f"{start}         {'missed: ' * ('met' in row)}{row['note'][:90]}")
            continue
        limited = f", limited to {row['limited']}" if "limited" in row else ""
        processor = f" ({row['processorRatio']:.2f} by processor time)" if "processorRatio" in row else ""
        share = f", {row['shareOfLimit']:.0%} of the limit" if "shareOfLimit" in row else ""
        met = "met" if row["met"] else "missed"
        say(f"{start}{row['ratio']:9.2f} {met:7}against {row['against']}{processor}{share}{limited}")


def say_memory(rows: Sequence[Mapping[str, Any]], say: Say) -> None:
    """Print a line for each log."""
    if rows:
        say("\nanonymous memory of a scan, MB: before, and at most while it runs")
    for row in rows:
        if "note" in row:
            say(f"  {row['data']:10}{row['note'][:120]}")
        else:
            sizes = "".join(f"{row[key] / 1e6:12,.1f}" for key in ("bytes", "before", "peak"))
            say(f"  {row['data']:10}{sizes}")


def say_articles(rows: Sequence[Mapping[str, Any]], say: Say) -> None:
    """Print a line for each claim."""
    say("\nclaims of articles")
    for row in rows:
        ways = ", ".join(f"{name} {figure:.3g}" for name, figure in row["ways"].items())
        more = "".join(f", {key} {row[key]:,}" for key in row if key.endswith("Bytes"))
        say(f"  {row['claim']}: {row['ratio']:.2f} ({ways} {row['unit']}{more})")
