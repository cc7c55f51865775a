"""The real Minecraft as a backend, on top of the installed `minestudio` package.

The package describes the mission, encodes actions and decodes the game's answers. Its handling of
processes is replaced: its launcher may prompt, wait forever, share ports and leave processes
behind. In this list, imports point downwards:

    backend         the game as `sim.env`: reset, step, commands; launches when needed
    session         one connection: missions and steps, each under a deadline
    process         one running game: start, readiness, end, including all its child processes
    node_locks      which ports are taken and who may start now, among a node's processes
    prerequisites   checks of Java, engine, display and package, with fixes
    launch_options  the mapping `minecraft` in the environment's config
    commands        old chat commands in the syntax of Minecraft 1.16
    items           the names of all items
    compat          the package `minestudio` itself

Nothing here is imported unless `engine: minecraft` is used, except `launch_options` and
`items`.
"""
