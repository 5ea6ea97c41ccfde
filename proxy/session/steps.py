"""What becomes of a frame of a request that was looked at."""

from typing import Final

Step = int
MORE: Final = 0  # more of it is needed first
CLOSED: Final = 1  # it ends the connection
REPLACED: Final = 2  # something else goes to the broker, or nothing
PASSED: Final = 3  # it goes on, and is counted already or later
COUNT: Final = 4  # it goes on, and is to be counted
