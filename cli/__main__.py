"""`python -m klamm.cli` is `klamm`."""

import sys

from klamm.cli import main

sys.exit(main())
