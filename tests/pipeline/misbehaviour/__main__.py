"""One client: python -m tests.pipeline.misbehaviour MODULE BOOTSTRAP SECONDS [cured]

It misbehaves; cured, it does as the detector's advice says.
"""

import sys
from importlib import import_module

if __name__ == "__main__":
    match sys.argv[1:]:
        case [name, bootstrap, seconds]:
            import_module(name).run(bootstrap, float(seconds))
        case [name, bootstrap, seconds, "cured"]:
            import_module(name).cured(bootstrap, float(seconds))
        case _:
            sys.exit(__doc__)
