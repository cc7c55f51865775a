"""The real Minecraft as a backend, on top of the installed `minestudio` package.

The package describes the mission, encodes actions and decodes the game's answers. Its handling of
processes is replaced: its launcher may prompt, wait forever, share ports and leave processes
behind. In this list, imports point downwards:

    backend         the game as `sim.env`: reset, step, commands; its missions under deadlines
    process         one running game: options, start, readiness, end with all its child processes
    prerequisites   checks of Java, engine, display and the package `minestudio`, with fixes
    items           the names of all items; old chat commands in the syntax of Minecraft 1.16

Nothing here is imported unless `engine: minecraft` is used, except the options in `process`, and
`items`.
"""
