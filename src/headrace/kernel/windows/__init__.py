"""Slices to windows: the rows of a node, each about a slice, to rows about windows that overlap or have gaps.

Rows are put in order once, lane by lane (`lanes.py`), for all windows and filters that they are asked for.
Then a window of a lane has its slices in one stretch of rows, and what it takes to combine these depends on the
state:

| file | needs of a state | time for a window | space for each row |
| --- | --- | --- | --- |
| directly.py | nothing | its slices | none |
| difference.py | that it can be taken away again (counts and sums) | constant | one state (floats: five words) |
| two_stacks.py | nothing | constant, and for all windows together their slices | one state |
| tree.py | nothing | the logarithm of its slices | two states, for any number of kinds of windows |

And for filters, what those have that contain each other: nested.py, by one walk for a chain of them.
"""

from headrace.kernel.windows.lanes import MOST_FOUND, Groups, Kinds, Lanes

__all__ = ["MOST_FOUND", "Groups", "Kinds", "Lanes"]
