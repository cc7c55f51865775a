"""`rllib watch`: a page in the browser in which a task is played, and agents are watched.

`server.py` serves the page of `page/` on loopback, and hands each tab a `Session`: a thread that
steps the views that the tab has chosen, in time. A view is a task that a person plays, an agent
that plays, or a recorded episode; `catalogue.py` finds what there is to view, and `protocol.py`
has the messages between page and server.
"""
