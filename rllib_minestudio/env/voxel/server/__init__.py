"""The embedded engine behind MineStudio's wire protocol, so that its own package plays on it.

MineStudio starts its engine as a process and talks to it over TCP (the protocol of MalmoEnv).
`python -m rllib_minestudio.env.voxel.server` is such a process; `launcher` puts it where
MineStudio looks for its engine. Below, imports point downwards:

    __main__            the process: options, ready lines, end
    launcher            the files that make MineStudio start that process
    turns               one call at a time; who has to make room
    service  owner      connections; noticing that the process's owner is gone
    session             one game, as the protocol sees it
    mission  step_text  what a mission and a step ask for
    wire                messages on a socket, with limits
"""
