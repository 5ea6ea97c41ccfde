"""A KDC of MIT Kerberos on a port of loopback, with files of its own, and the settings of its brokers."""

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.brokers.processes import Process, free_ports, wait_for

REALM = "KLAMM.TEST"
KRB5_CONF = """\
[libdefaults]
  default_realm = {realm}
  dns_lookup_kdc = false
  dns_lookup_realm = false
  dns_canonicalize_hostname = false
  rdns = false
  udp_preference_limit = 1
[realms]
  {realm} = {{
    kdc = 127.0.0.1:{port}
  }}
"""
KDC_CONF = """\
[kdcdefaults]
  kdc_listen = 127.0.0.1:{port}
  kdc_tcp_listen = 127.0.0.1:{port}
[realms]
  {realm} = {{
    database_name = {folder}/principal
    key_stash_file = {folder}/stash
    acl_file = {folder}/kadm5.acl
    max_life = {life}
    supported_enctypes = aes256-cts-hmac-sha1-96:normal
  }}
[logging]
  kdc = STDERR
"""


class Kdc:
    """`environment` leads the system's libraries to it."""

    def __init__(self, folder: Path, life: str = "1h") -> None:
        self.folder, self.port = folder, free_ports()
        self.config = folder / "krb5.conf"
        self.config.write_text(KRB5_CONF.format(realm=REALM, port=self.port))
        text = KDC_CONF.format(realm=REALM, port=self.port, folder=folder, life=life)
        (folder / "kdc.conf").write_text(text)
        self.environment = {
            "KRB5_CONFIG": str(self.config),
            "KRB5_KDC_PROFILE": str(folder / "kdc.conf"),
            "KRB5CCNAME": f"FILE:{folder}/ccache",
        }
        self.run("kdb5_util", "create", "-s", "-r", REALM, "-P", "master")

    def run(self, *command: str) -> None:
        environment = {**os.environ, **self.environment}
        subprocess.run(command, check=True, capture_output=True, timeout=60, env=environment)

    def keytab(self, principal: str) -> Path:
        """A file with a new key of this principal."""
        file = self.folder / f"{principal.replace('/', '-')}.keytab"
        self.run("kadmin.local", "-r", REALM, "-q", f"addprinc -randkey {principal}@{REALM}")
        self.run("kadmin.local", "-r", REALM, "-q", f"ktadd -k {file} {principal}@{REALM}")
        return file


@contextmanager
def kdc(folder: Path, **settings: str) -> Iterator[Kdc]:
    """Running."""
    made = Kdc(folder, **settings)
    process = Process(["krb5kdc", "-n", "-r", REALM], folder / "kdc.log", made.environment)
    try:
        wait_for(lambda: "commencing operation" in (folder / "kdc.log").read_text(), "the KDC", [process])
        yield made
    finally:
        process.stop()


def broker_settings(listener: str, hosts: Sequence[str], kdc: Kdc) -> dict[str, str]:
    """Of a broker; its principal is that of the first host."""
    [host] = hosts
    keytab = kdc.keytab(f"kafka/{host}")
    module = "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true"
    return {
        f"listener.name.{listener.lower()}.gssapi.sasl.jaas.config": (
            f'{module} keyTab="{keytab}" principal="kafka/{host}@{REALM}";'
        ),
        "sasl.kerberos.service.name": "kafka",
    }
