"""The lead of a klamm whose workers cannot start."""

from dataclasses import replace
from pathlib import Path

import pytest
import uvloop

from klamm.proxy.config import Admin, Cluster, Config, Count, Listen, State
from klamm.proxy.log.event_log import open_log
from klamm.proxy.serve import CannotServe, Proxy
from klamm.proxy.workers import processes


def test_klamm_ends_with_a_reason_where_a_worker_cannot_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "MODULE", "klamm.no_such_module")
    config = Config(admin=Admin(listen=None), state=State(None), workers=Count(2))
    config = replace(config, clusters=(Cluster(bootstrap=(), listen=Listen("127.0.0.1", 0, 0)),))
    log = open_log(config.log)
    with pytest.raises(CannotServe, match=r"worker \d has ended before it was ready: exit code 1"):
        uvloop.run(Proxy(config, log).run(lambda _: None))
    log.close()
