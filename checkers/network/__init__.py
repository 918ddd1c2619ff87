"""The engine for composed systems: a network of tabulated parts, walked breadth first.

Theory of operation
===================

``explicit.explore`` walks every reachable state of a system once and answers, on the way, every question that its properties ask;
``explicit.check`` turns the answers into verdicts. Two walks give the same answers:

* the **plain** walk performs each step through ``machine.step`` (``run``) and keeps states as the values they are;
* the **compiled** walk numbers the local states of parts, channels and budgets, asks ``machine.step`` for an entry of a part's table the
  first time it is needed, and lets one kernel walk the tables. States are integers, a few bytes each; nothing is compiled for a model.

Neither trusts the other: they are compared on random systems, and whatever the compiled walk finds is performed again by ``run``
before it is shown. Promises about the future are judged on the graph afterwards, by the liveness engine that single machines use.

**Reductions.** What a specification calls interchangeable is walked once for all its exchanges, where that is asked for (``symmetry``);
golden numbers and oracles count every state. There is no partial order reduction: it would lose shortest counterexamples, and it
would leave out nothing. Measured (``python -m benchmarks.independence``): of the pairs of steps enabled together 1 to 34 % are
independent in the project's systems, up to 76 % in the classics; but in each of them everything that can begin a step hangs together
in one cluster, so that no step can be taken alone. Deliveries, which such a reduction is best at, are few: no system of the project
has more than one channel.

| module | holds |
|---|---|
| ``explicit``, ``judging`` | ``explore``, ``check``, ``check_variants``; what a walk shows of each property |
| ``estimate``, ``coverage`` | how large before a long run; what was passed through after it |
| ``triggers`` | everything that may begin a step |
| ``run`` | what a step is, in plain Python through ``machine.step``: the reference, and the replay of every counterexample |
| ``walk`` | what a walk is asked, and what it answers |
| ``plain``, ``plain_labels`` | the plain walk, and its graph with edges |
| ``tables``, ``arrays``, ``compile``, ``asked`` | a system as tables; as the kernel's arrays; formulas and questions for it |
| ``kernel`` | the compiled loops |
| ``shard``, ``compiled``, ``compiled_labels`` | the known states; the compiled walk; its graph with the edges that bounds need |
| ``promised``, ``promises``, ``fair`` | the same graph for promises about the future, as bits; judging one; the compiled loops of both |
| ``symmetry``, ``folded`` | exchanges of what is interchangeable; the same for the kernel |
| ``routes`` | the same failure by other ways to begin its last step |
| ``questions``, ``vacuity``, ``labelled``, ``within`` | what properties ask; what no run uses; promises about the future, and with a time |
| ``story``, ``play`` | telling a counterexample; playing one again by hand |
"""
