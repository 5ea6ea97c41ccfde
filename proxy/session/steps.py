"""The results of reading a frame: they tell the caller how to go on."""

from typing import Final

Step = int
MORE: Final = 0  # stop here: more of this frame is needed, or it has ended the connection
CLOSED: Final = 1  # the frame ends the connection
REPLACED: Final = 2  # the pieces in `instead` go on in its place, or nothing
PASSED: Final = 3  # it goes on, and the caller does not count it
COUNT: Final = 4  # it goes on, and the caller counts it
