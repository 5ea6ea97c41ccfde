"""One misbehaving client: python -m tests.pipeline.misbehaviour MODULE BOOTSTRAP SECONDS."""

import sys
from importlib import import_module

if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    name, bootstrap, seconds = sys.argv[1:]
    import_module(name).run(bootstrap, float(seconds))
