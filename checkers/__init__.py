"""The engines: they read tables and properties, never a particular machine."""
