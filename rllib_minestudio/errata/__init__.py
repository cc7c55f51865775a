"""Defects of the learner that were mended, and how to tell whether a run was affected by one.

Every record of a checkpoint or run names the revision of the learner's numerics that made it; one
that names none is of revision 0. A run is affected by an erratum if it was trained, in the mode
concerned, by a revision from before the mend. The next erratum is one more entry of `ERRATA`
(`entries.py`), with a `mended_in` one above the present `NUMERICS`; its mode is one more function
in `modes.py`.

A run is judged by its records alone, so nothing here imports Ray or torch.
"""

from rllib_minestudio.errata.entries import ERRATA, NUMERICS, Erratum, Verdict, judge
from rllib_minestudio.errata.stage import Finding, Stage

__all__ = ["ERRATA", "NUMERICS", "Erratum", "Finding", "Stage", "Verdict", "judge"]
