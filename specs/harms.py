"""Who is hurt how where a requirement is broken: the last line of every counterexample that has none of its own.

One sentence a requirement, in the words of somebody who uses the runtime. A property whose breach hurts in its own way says so itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from turnproof.machines.kernel import TableError
from turnproof.specs.language import Property, Sometimes

HARMS: Mapping[str, str] = {
    # One reply of a session.
    "R-REPLY-1": "the user is told another end than the one there was",
    "R-REPLY-2": "two replies write the same session at once",
    "R-REPLY-3": "the session counts as taken by a reply that is over, or as free beside one that is not",
    "R-REPLY-4": "the session is wedged: every later message waits for a reply that is over",
    "R-REPLY-5": "if the owner never comes back, the session is wedged for ever",
    "R-REPLY-6": "a caller waits for a key that is free, or starts beside its holder",
    "R-REPLY-7": "a caller that knows the old id is told the session is idle while it runs",
    "R-REPLY-8": "a reply whose text is already sent is shown as aborted",
    "R-REPLY-9": "work is killed inside a step that must not be cut, or cannot be stopped although it may",
    "R-REPLY-10": "one abort is let through where the same abort by another way is refused",
    "R-REPLY-11": "the attempt reports the user's abort, and no fallback is tried",
    "R-REPLY-12": "the fallback starts under an aborted signal, and the message stays without an answer",
    "R-REPLY-13": "a second cancel reaches the attempt while it is cleaning up",
    "R-REPLY-14": "the fallback is kept out of its own reply, and the message stays without an answer",
    "R-REPLY-15": "a reply without an attempt keeps the session, or loses it while it waits its turn",
    "R-REPLY-16": "a successor runs beside a backend that nobody stopped",
    "R-REPLY-17": "a reply that is being delivered is thrown away",
    "R-REPLY-18": "a delivery that hangs holds the session for ever, or a live one is cut",
    "R-REPLY-19": "a reply that waits for capacity, or for a person, is killed for waiting",
    "R-REPLY-20": "a listener acts twice, or changes the end that was already told",
    "R-REPLY-21": "a cancel that throws, or an owner that vanished, leaves the session taken for ever",
    "R-REPLY-22": "work that was aborted goes on at the user's cost, or is told the wrong reason for its end",
    "R-REPLY-23": "the session stays taken by a reply that never ran, or is given away while its owner still writes",
    "R-REPLY-24": "what an old reply leaves behind kills or starves its successor",
    "R-REPLY-25": "two keys share a session, and each wakes the other's waiters",
    "R-REPLY-26": "the next turn runs beside an attempt that still writes the session, or is never started",
    "R-REPLY-27": "a follow-up starts while what it should follow still works",
    "R-REPLY-28": "a message is accepted by a run that will never read it",
    # The turn loop and its calls.
    "R-LOOP-1": "a stream that died is taken for a finished answer",
    "R-LOOP-2": "a caller waits for ever, or gets two answers",
    "R-LOOP-3": "a run that failed is shown as a success, or without its cause",
    "R-LOOP-4": "a request storm: the user pays for the same question again and again",
    "R-LOOP-5": "a side effect happens twice, or a call that was asked for never runs",
    "R-LOOP-6": "a call shows as running for ever in a session that is idle",
    "R-LOOP-7": "the model runs again what may have happened",
    "R-LOOP-8": "the loop ends before its answer, or goes on after it",
    "R-LOOP-9": "the provider is hit as fast as it answers, and the user sees a loop that seems busy",
    "R-LOOP-10": "what the user stopped goes on: tools run and tokens are spent",
    "R-LOOP-11": "a late result of an old run ends or changes the new one",
    "R-LOOP-12": "the conversation is cut behind an empty summary, or summed up for ever",
    "R-LOOP-13": "a message of the user vanishes, or is answered twice",
    "R-LOOP-15": "a run that a person's no ended looks finished",
    "R-LOOP-16": "a cut or censored answer passes for the whole",
    "R-LOOP-17": "an agent with a limit goes on for ever",
    "R-LOOP-19": "a long run errs for a few bad streams, hours apart",
    "R-LOOP-23": "half an answer leaves no trace for whoever looks for the fault",
    "R-LOOP-25": "the model is asked about a conversation that nobody had",
    "R-LOOP-26": "an answer the user has read is thrown away or repeated",
    "R-LOOP-28": "work that was done is asked for again",
    "R-LOOP-29": "a person is not asked about a call, or asked for nothing; or the same call repeats without end",
    "R-LOOP-31": "a stream that died without a finish part is reported with the reason of another",
    # Attempts, failover and recovery.
    "R-ATT-1": "the message is given up although a fallback could answer it",
    "R-ATT-2": "a recovered attempt has no class, so no fallback is tried",
    "R-ATT-3": "failover decides on flags that a listener set before anybody looked",
    "R-ATT-5": "a command that changes the world is run again",
    "R-ATT-6": "a stall surfaces as an abort, and the configured fallback is never asked",
    "R-ATT-8": "a run that hangs after its model call is replayed",
    "R-ATT-9": "an attempt is killed inside a step that must not be cut, or after its answer",
    "R-ATT-10": "an approval that takes its time kills the run that asked for it",
    "R-ATT-11": "a command that is still running is started a second time",
    "R-ATT-12": "a side effect happens twice",
    "R-ATT-14": "the turn is tried again although the user stopped it, or the command runs twice",
    "R-ATT-15": "a failure after a timeout makes the turn look as if it may be tried again",
    "R-ATT-16": "a stray cancel turns a stall into a person's abort, or stops the fallback",
    "R-ATT-17": "a long tool counts as a silent provider, and the turn is tried again while it runs",
    "R-ATT-18": "the run is cut short of its time, aborted twice, or never ended",
    "R-ATT-19": "a session whose attempt is over still counts as busy",
    "R-ATT-20": "a case that no row describes is never looked at again, or tried for ever",
    "R-ATT-21": "messages to a dead run, or a provider that fails again and again, keep it looking alive",
    "R-ATT-22": "two recoveries of one session clear each other's work",
    "R-ATT-23": "a run that hangs is never stopped, or a slow machine stops one that works",
    "R-ATT-24": "a run of a lifecycle that is over blocks the session of the new one",
    "R-ATT-25": "the attempt that replaced the stuck one is aborted or cleared in its place",
    "R-ATT-26": "a turn that has just begun is forgotten in place of the stuck one",
    "R-ATT-27": "a turn is answered twice, never, or before the one it follows",
    "R-ATT-28": "a session is called recovered while its owner still works",
    "R-ATT-29": "the user is told that they aborted what a stall ended",
    "R-ATT-31": "the watchdog stops a run that works, or leaves alone one that hangs",
    # The OpenCode session.
    "R-SES-1": "the user gets two ends for one prompt, or the end of another turn",
    "R-SES-2": "the user reads an answer that is not the answer to their prompt",
    "R-SES-3": "a Stop of an earlier turn ends the next one",
    "R-SES-4": "the user is told of an answer to a prompt that was never sent",
    "R-SES-5": "two prompts run at once and write the same files",
    "R-SES-6": "the turn waits for an end that has come already",
    "R-SES-7": "a background reply appears as the answer to the prompt, or twice",
    "R-SES-8": "the user is never asked, and the run waits for ever",
    "R-SES-9": "a prompt is held back from a session that is free, or sent into one that works",
    "R-SES-10": "the turn shows as running for ever",
    "R-SES-12": "a background reply is never shown",
    "R-SES-15": "the user presses Stop, or sends, and nothing ever answers",
    "R-SES-16": "after the connection is lost the turn shows as running for ever",
    "R-SES-17": "the next end is taken for the wrong run's",
    "R-SES-18": "the end of a run is eaten, or ends another's turn",
    "R-SES-20": "the continuation's end is eaten, and its turn shows as running for ever",
    "R-SES-21": "a background reply that is over keeps the session for ever",
    "R-SES-22": "the late end of a stopped run ends the next turn",
    "R-SES-23": "two prompts run at once",
    "R-SES-27": "after a reconnect the next end is eaten, or ends the wrong turn",
    "R-SES-28": "an adapter waits for an end that nobody will repeat",
    "R-SES-31": "after a refusal every prompt is delayed by a question nobody needs",
}
"""Requirement -> the sentence."""


def with_harms(properties: Iterable[Property]) -> tuple[Property, ...]:
    """The properties; each that names no harm has that of the first of its requirements.

    A :class:`Sometimes` has none: that something cannot happen hurts nobody. Raises :class:`TableError` where there is no sentence.
    """
    return tuple(prop if prop.harm or isinstance(prop, Sometimes) else attrs.evolve(prop, harm=_harm(prop)) for prop in properties)


def _harm(prop: Property) -> str:
    for requirement in prop.requirements:
        if requirement in HARMS:
            return HARMS[requirement]
    raise TableError(f"property {prop.name!r}: write harm=, or a sentence for {' or '.join(prop.requirements)} in specs/harms.py")


__all__ = ["HARMS", "with_harms"]
