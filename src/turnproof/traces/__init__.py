"""Trace lines: what a runtime did, one event a line, written by the shell and judged by ``turnproof replay``.

| module | what it holds |
|---|---|
| ``line`` | the format: fields, version, errors that name file, line and column |
| ``coding`` | events and states of a machine as JSON and back |
| ``writer`` | :class:`~turnproof.traces.writer.TraceWriter`, the ``trace=`` hook of a runner |
| ``exporters`` | steps for ``logging`` and OpenTelemetry, and several hooks at once |
| ``files`` | plain, compressed and rotated files, in blocks of whole lines |
| ``source``, ``openclaw`` | recordings of other programs, and how their calls are events of a machine |

The format is described for people in ``FORMAT.md`` and for programs in ``trace-line.schema.json``, both beside this file. Nothing
here steps a machine; ``turnproof.checkers.traces`` does.
"""
