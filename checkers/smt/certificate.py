"""The certificate of a proof: written whole or not at all, and read back with nothing taken on trust.

Reading checks, before any solver is asked: the JSON and its keys; the digest; that every text is one term, so that none can close
a bracket and assert something of its own; that every symbol has a sort, every event a last row without a guard and every
field of the state a type; and that prelude and queries are exactly those that the pieces ask for (:mod:`.compose`).
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from turnproof.checkers.smt import CertificateError, compose
from turnproof.checkers.smt.pieces import FORMAT, Certificate, Claim, Conjunct, Group, Table

LARGEST_MB = 200
"""A larger file is not read: no certificate of the project comes near."""


def make(
    table: Table, invariant: Iterable[Conjunct], claims: Iterable[Claim], unproved: Mapping[str, str], made_with: Mapping[str, str]
) -> Certificate:
    """A certificate with all its queries."""
    conjuncts, claimed = tuple(invariant), tuple(claims)
    bare = Certificate(
        format=FORMAT,
        made_with=dict(made_with),
        table=table,
        invariant=conjuncts,
        claims=claimed,
        unproved=dict(unproved),
        prelude=compose.prelude(table, conjuncts, claimed),
        groups=compose.groups(table, conjuncts, claimed),
        digest="",
    )
    return msgspec.structs.replace(bare, digest=digest(bare))


def digest(certificate: Certificate) -> str:
    """SHA-256 over everything but the digest itself."""
    return hashlib.sha256(msgspec.json.encode(msgspec.structs.replace(certificate, digest=""))).hexdigest()


def write(certificate: Certificate, path: Path) -> None:
    """Write the file; an interrupted write leaves what was there before."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(path.name + ".part")
    beside.write_bytes(msgspec.json.format(msgspec.json.encode(certificate), indent=1) + b"\n")
    beside.replace(path)


def read(path: Path) -> Certificate:
    """The certificate in ``path``. Raises :class:`CertificateError`."""
    try:
        if path.stat().st_size > LARGEST_MB << 20:
            raise CertificateError(f"{path}: more than {LARGEST_MB} MB; that is no certificate")
        text = path.read_bytes()
    except OSError as error:
        raise CertificateError(f"{path}: cannot be read: {error.strerror or error}") from None
    try:
        certificate = msgspec.json.decode(text, type=Certificate)
    except msgspec.ValidationError as error:
        raise CertificateError(f"{path}: no certificate: {error}") from None
    except msgspec.DecodeError as error:
        raise CertificateError(f"{path}: no whole JSON: {error}; a certificate is written by `turnproof verify`") from None
    except UnicodeDecodeError as error:
        raise CertificateError(f"{path}: not text in UTF-8 at byte {error.start}; a certificate is JSON") from None
    check(certificate, str(path))
    return certificate


def check(certificate: Certificate, place: str) -> None:
    """Raise :class:`CertificateError`, beginning with ``place``, at the first thing that is not as it must be."""
    for problem in _problems(certificate):
        raise CertificateError(f"{place}: {problem}")


def _problems(certificate: Certificate) -> Iterator[str]:
    if certificate.format != FORMAT:
        yield f"$.format: expected {FORMAT!r}, found {certificate.format!r}"
    if certificate.digest != digest(certificate):
        yield "$.digest: the contents are not those that were written; expected " + digest(certificate)
    yield from _table_problems(certificate.table)
    yield from _term_problems(certificate)
    yield from _invariant_problems(certificate)
    expected = compose.prelude(certificate.table, certificate.invariant, certificate.claims)
    if certificate.prelude != expected:
        yield f"$.prelude: it is not that of the pieces; {_difference(expected.splitlines(), certificate.prelude.splitlines())}"
    yield from _group_problems(compose.groups(certificate.table, certificate.invariant, certificate.claims), certificate.groups)


# ── the table ──

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
_SORT = re.compile(r"Bool|Int|\(_ BitVec [1-9][0-9]?\)")


def _table_problems(table: Table) -> Iterator[str]:
    names = [*(f"now.{v.name}" for v in table.state), *(f.name for f in table.fields), *(w.name for w in table.words)]
    for name in names:
        if not _NAME.fullmatch(name):
            yield f"$.table: {name!r} is no symbol"
    for name, times in _tally(names):
        yield f"$.table: the symbol {name} is declared {times} times"
    for event in table.events:
        if f"on.{event}" not in names:
            yield f"$.table.words: expected on.{event}, the word for one of the events"
    for place, piece in (*_numbered("state", table.state), *_numbered("fields", table.fields), *_numbered("words", table.words)):
        if not _SORT.fullmatch(piece.sort):
            yield f"{place}.sort: expected Bool, Int or (_ BitVec n), found {piece.sort!r}"
    for field in table.fields:
        if not field.name.startswith("event."):
            yield f"$.table.fields: {field.name!r} does not begin with event."
    for word in table.words:
        if not word.name.startswith(("on.", "answer.", "count.")):
            yield f"$.table.words: {word.name!r} is no word of a step"
    yield from _row_problems(table)


def _numbered(name: str, pieces: Iterable[object]) -> list[tuple[str, Any]]:
    return [(f"$.table.{name}[{n}]", piece) for n, piece in enumerate(pieces)]


def _tally(names: Iterable[str]) -> Iterator[tuple[str, int]]:
    ordered = sorted(names)
    for name, same in itertools.groupby(ordered):
        count = len(list(same))
        if count > 1:
            yield name, count


def _row_problems(table: Table) -> Iterator[str]:
    machine = {v.name for v in table.state if v.name not in table.histories}
    counts = {w.name for w in table.words if w.name.startswith("count.")}
    for name, times in _tally(row.name for row in table.rows):
        yield f"$.table.rows: {times} rows are called {name!r}"
    for number, row in enumerate(table.rows):
        place = f"$.table.rows[{number}]"
        if row.event not in table.events:
            yield f"{place}.event: {row.event!r} is none of the events"
        if not machine.issuperset(row.next):
            yield f"{place}.next: {sorted(set(row.next) - machine)[0]!r} is no field of the state"
        if not counts.issuperset(row.counts):
            yield f"{place}.counts: {sorted(set(row.counts) - counts)[0]!r} is no count"
        if row.answer != "taken" and (row.next or row.counts):
            yield f"{place}: a step that is {row.answer} changes nothing and emits nothing"
    for name in counts - {name for row in table.rows for name in row.counts}:
        if name.startswith("count.fault."):
            yield f"$.table.words: no row counts {name}; that no step is such a fault would say nothing"
    for event in table.events:
        mine = [row for row in table.rows if row.event == event]
        if not mine or mine[-1].guard != "true":
            yield f"$.table.rows: the last row of {event} must have the guard true; otherwise some steps are not covered"
    if not any(row.fires for row in table.rows):
        yield "$.table.rows: no row fires; of a machine that never moves anything can be shown"
    for name in table.histories:
        if name not in {v.name for v in table.state}:
            yield f"$.table.histories: {name!r} is no field of the state"


# ── texts ──


def _term_problems(certificate: Certificate) -> Iterator[str]:
    for place, text in _texts(certificate):
        problem = not_one_term(text)
        if problem:
            yield f"{place}: expected one SMT-LIB term: {problem}"


def _texts(certificate: Certificate) -> Iterator[tuple[str, str]]:
    table = certificate.table
    yield "$.table.assumption", table.assumption
    yield from ((f"$.table.state[{n}].initial", v.initial) for n, v in enumerate(table.state))
    yield from ((f"$.table.fields[{n}].domain", f.domain) for n, f in enumerate(table.fields))
    yield from ((f"$.table.histories[{name!r}]", text) for name, text in table.histories.items())
    for n, row in enumerate(table.rows):
        yield f"$.table.rows[{n}].guard", row.guard
        yield from ((f"$.table.rows[{n}].next[{name!r}]", text) for name, text in row.next.items())
        yield from ((f"$.table.rows[{n}].counts[{name!r}]", text) for name, text in row.counts.items())
    yield from ((f"$.invariant[{n}].smt", c.smt) for n, c in enumerate(certificate.invariant))
    yield from ((f"$.claims[{n}].smt", c.smt) for n, c in enumerate(certificate.claims))


_TOKEN = re.compile(r"\s*(?:(?P<open>\()|(?P<close>\))|(?P<atom>[A-Za-z0-9_.#!<>=+*/-]+))")


def not_one_term(text: str) -> str:
    """Why ``text`` is not exactly one term of symbols, literals and brackets; empty if it is."""
    depth = terms = at = 0
    while at < len(text.rstrip()):
        found = _TOKEN.match(text, at)
        if found is None:
            return f"unexpected {text[at:].strip()[:10]!r}"
        at = found.end()
        terms += depth == 0 and found.lastgroup != "close"
        depth += (found.lastgroup == "open") - (found.lastgroup == "close")
        if depth < 0:
            return "a bracket closes that was not opened"
    if depth:
        return f"{depth} brackets are not closed"
    return "" if terms == 1 else f"{terms} terms"


# ── the invariant, the claims and the queries ──


def _invariant_problems(certificate: Certificate) -> Iterator[str]:
    known = compose.sorts(certificate.table)
    states = {f"now.{v.name}" for v in certificate.table.state}
    yield from _reading_problems("invariant", certificate.invariant, states)
    yield from _reading_problems("claims", [c for c in certificate.claims if c.kind == "always"], states)
    yield from _reading_problems("claims", [c for c in certificate.claims if c.kind == "step"], set(known))
    for name, times in _tally(claim.name for claim in certificate.claims):
        yield f"$.claims: {times} are called {name!r}"
    for number, claim in enumerate(certificate.claims):
        if claim.kind == "step" and claim.k != 1:
            yield f"$.claims[{number}].k: a claim about steps is not shown by k-induction"
        if not 1 <= claim.k <= compose.LARGEST_K:
            yield f"$.claims[{number}].k: expected 1 to {compose.LARGEST_K}, found {claim.k}"
    if not certificate.claims:
        yield "$.claims: there is none; such a certificate shows nothing"
    for name in certificate.table.claimed:
        if not any(claim.name == name and claim.kind == "step" for claim in certificate.claims):
            yield f"$.claims: {name!r} is missing; without it a step that is not allowed shows anything"
    yield from (
        f"$.unproved: {name!r} is also among the claims" for name in certificate.unproved if any(c.name == name for c in certificate.claims)
    )


def _reading_problems(what: str, pieces: Sequence[Conjunct | Claim], allowed: set[str]) -> Iterator[str]:
    for piece in pieces:
        for symbol in piece.reads:
            if symbol not in allowed:
                yield f"$.{what}: {piece.name!r} reads {symbol!r}, which is no symbol it may read"


def _group_problems(expected: tuple[Group, ...], found: tuple[Group, ...]) -> Iterator[str]:
    for number, (want, have) in enumerate(zip(expected, found, strict=False)):
        place = f"$.groups[{number}]"
        if want.name != have.name:
            yield f"{place}.name: expected {want.name!r}, found {have.name!r}; a group is missing or misplaced"
        if want.preamble != have.preamble:
            yield f"{place}.preamble: it is not that of the pieces; {_difference(want.preamble.splitlines(), have.preamble.splitlines())}"
        for place_in_group, (one, other) in enumerate(itertools.zip_longest(want.queries, have.queries)):
            where = f"{place}.queries[{place_in_group}]"
            if one is None:
                yield f"{where}: {other.name!r} is one query too many"
            elif other is None:
                yield f"{where}: the query {one.name!r} is missing"
            elif one != other:
                want_text, have_text = (f"{q.name!r}: {q.assertion} is {q.expected}" for q in (one, other))
                yield f"{where}: expected {want_text}; found {have_text}"
    if len(found) != len(expected):
        yield f"$.groups: expected {len(expected)}, found {len(found)}"


def _difference(expected: list[str], found: list[str]) -> str:
    for number, (one, other) in enumerate(itertools.zip_longest(expected, found, fillvalue="nothing"), 1):
        if one != other:
            return f"line {number}: expected {one[:120]}, found {other[:120]}"
    return "only its blank space differs"


def text(certificate: Certificate) -> str:
    """All queries as one SMT-LIB file, which any solver reads; the expected answer stands before each as a comment."""
    lines = [certificate.prelude]
    for group in certificate.groups:
        lines += ["", f"; {group.name}", "(push 1)", group.preamble]
        for query in group.queries:
            lines += [f"; {query.name}: {query.expected}", "(push 1)", f"(assert {query.assertion})", "(check-sat)", "(pop 1)"]
        lines.append("(pop 1)")
    return "\n".join(lines) + "\n"
