"""What the event stream does of itself."""

from __future__ import annotations

from turnproof.machines import session_stream as stream
from turnproof.machines.kernel import implies, not_, one_of, symbol
from turnproof.machines.session_words import (
    ExecutionEnded,
    ExecutionStarted,
    HistoryRead,
    StreamDied,
)
from turnproof.specs.harms import with_harms
from turnproof.specs.language import Sometimes, Spec, Step, after, emits, on, taken
from turnproof.specs.session_requirements import requirements

after_stream = after(stream.Stream)
arrived = symbol(stream.Arrived)
SPEC = Spec(
    machine=stream.MACHINE,
    requirements=requirements(16, 28),
    properties=with_harms((
        Step("what is published while nobody is subscribed reaches nobody", requirements="R-SES-28", holds=
             implies(on(stream.Published) & one_of(stream.now.phase, stream.LOST, stream.DEAD), not_(emits(stream.Buffer)))),
        Step("a drop loses the buffer", requirements="R-SES-28", holds=
             implies(on(stream.Dropped) & taken(), emits(stream.LoseBuffer) & (after_stream.phase == stream.LOST))),
        Step("the history is read before the stream is up again", requirements="R-SES-28", holds=
             implies((stream.now.phase != stream.UP) & (after_stream.phase == stream.UP), emits(HistoryRead))),
        Step("a start says that something started, an end that something ended", requirements="R-SES-28", holds=
             implies(on(stream.Arrived), (emits(ExecutionStarted) == (arrived.what == stream.What.STARTED))
             & (emits(ExecutionEnded) == one_of(arrived.what, stream.What.SUCCEEDED, stream.What.INTERRUPTED, stream.What.FAILED)))),
        Step("a restart is told to whoever reads the history next", requirements="R-SES-28", holds=
             implies(on(stream.ServerLost) & (stream.now.phase != stream.DEAD), after_stream.restarted)),
        Step("what is dead stays so", requirements="R-SES-16", holds=
             implies(stream.now.phase == stream.DEAD, after_stream.phase == stream.DEAD)),
        Sometimes("it dies", emits(StreamDied), requirements="R-SES-16"),
    )),
    tokens=2,
)  # fmt: skip
