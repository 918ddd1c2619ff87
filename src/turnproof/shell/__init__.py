"""The asyncio shell: applies an event to a machine, stores the state, then performs the effects in order."""
