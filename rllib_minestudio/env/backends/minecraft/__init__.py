"""The real Minecraft behind our simulator, over the installed `minestudio` package.

MineStudio's package brings the mission, the text of actions and the meaning of the game's answers.
What it does with processes is replaced: its launcher may prompt, wait forever, share ports and
leave processes behind. Below, imports point downwards:

    backend         the game as `sim.env`: reset, step, commands; launches when needed
    session         one connection: missions and steps, each under a deadline
    process         one running game: start, readiness, end, with everything it has started
    node_locks      which ports are taken and who may start now, between a node's processes
    prerequisites   whether Java, engine, display and package are there, and what would fix it
    launch_options  the mapping `minecraft` in the environment's config
    items           the names of all items
    compat          the package `minestudio` itself

Nothing here is imported unless `engine: minecraft` is asked for, except `launch_options` and
`items`.
"""
