"""A certificate authority and a broker's certificate, made by openssl, for the tests' TLS listeners."""

import subprocess
from collections.abc import Iterable
from pathlib import Path


def make(directory: Path, names: Iterable[str], authority: str = "klamm tests") -> None:
    """Write ca.pem (the authority, of this name) and broker.pem (key and certificate for `names`) into
    `directory`.
    """
    subject_names = ",".join(
        f"{'IP' if name[0].isdigit() or ':' in name else 'DNS'}:{name}" for name in dict.fromkeys(names)
    )
    (directory / "names.ext").write_text(f"subjectAltName={subject_names}\n")
    new_key = "-newkey rsa:2048 -nodes -batch".split()
    commands = [
        [
            "req",
            "-x509",
            *new_key,
            "-days",
            "60",
            "-subj",
            f"/CN={authority}",
            "-keyout",
            "ca.key",
            "-out",
            "ca.pem",
        ],
        ["req", *new_key, "-subj", "/CN=broker", "-keyout", "broker.key", "-out", "broker.csr"],
        ["x509", "-req", "-in", "broker.csr", *"-CA ca.pem -CAkey ca.key -CAcreateserial -days 60".split()]
        + "-extfile names.ext -out broker.crt".split(),
    ]
    for command in commands:
        subprocess.run(["openssl", *command], cwd=directory, check=True, capture_output=True, timeout=30)
    pem = (directory / "broker.key").read_text() + (directory / "broker.crt").read_text()
    (directory / "broker.pem").write_text(pem)


def of_client(directory: Path, subject: str, name: str = "client") -> Path:
    """Write NAME.pem, key and certificate of a client, by the authority in `directory`. The subject is as
    openssl takes it: /O=Example/CN=orders.
    """
    new = f"req -newkey rsa:2048 -nodes -batch -utf8 -keyout {name}.key -out {name}.csr -subj"
    sign = f"x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 60 -out {name}.crt"
    for command in ([*new.split(), subject], sign.split()):
        subprocess.run(["openssl", *command], cwd=directory, check=True, capture_output=True, timeout=30)
    found = directory / f"{name}.pem"
    found.write_text((directory / f"{name}.key").read_text() + (directory / f"{name}.crt").read_text())
    return found
