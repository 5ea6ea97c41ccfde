"""Secrets from files or the environment."""

from __future__ import annotations

import os
from pathlib import Path

from klamm.proxy.cluster.conversation import Unanswered
from klamm.proxy.config_types import InputFile, Text


def secret_of(file: InputFile | None, env: Text | None) -> str:
    """As it is now, without the end of its line. Raises Unanswered, whose text does not have it."""
    if env is not None:
        secret, where = os.environ.get(env, ""), f"the environment variable {env}"
    else:
        assert file is not None
        where = f"the file {file}"
        try:
            secret = Path(file).read_text().strip("\r\n")
        except UnicodeDecodeError:
            raise Unanswered(f"klamm's own credentials: {where} is no text") from None
        except OSError as error:
            raise Unanswered(f"klamm's own credentials: {where} cannot be read: {error.strerror}") from None
    if not secret:
        raise Unanswered(f"klamm's own credentials: {where} is empty")
    return secret
