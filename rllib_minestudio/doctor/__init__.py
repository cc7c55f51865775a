"""Looks at what works on this machine by using it: the checks, and the processes they run in."""
