"""The pure core: one file a machine, and the kernel they are written in."""
