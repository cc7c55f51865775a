"""The embedded engine behind MineStudio's wire protocol, for use by the MineStudio package itself.

MineStudio starts its engine as a process and talks to it over TCP (the protocol of MalmoEnv).
`python -m rllib_minestudio.env.voxel.server` is such a process; `launcher` puts it where
MineStudio looks for its engine. Each module imports only from those listed below it:

    __main__    the process: options, ready lines, end
    launcher    the files that make MineStudio start that process; noticing that the owner is gone
    service     connections, and taking turns at the engine
    session     missions, the games that they start, and their steps
"""
