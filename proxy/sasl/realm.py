"""The principals that may use a cluster by SASL with klamm, and one authentication of one client."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from klamm.proxy.sasl.mechanisms import Bearer, Mechanism, Plain, Scram
from klamm.proxy.sasl.tokens import Verifier
from klamm.proxy.sasl.users import Users
from klamm.proxy.sasl.verdicts import FORBIDDEN, Failed, Proven, Verdict

MAY_NOT = "Authentication failed: {} may not use this cluster"
OTHER_PRINCIPAL = "Cannot change principals during re-authentication"  # as Kafka's brokers say

LONGEST_S = 100 * 365 * 86400.0  # of a session: an issuer may say any number


def principal_of(user: str) -> str:
    return f"User:{user}"


@dataclass(slots=True)
class Realm:
    """`users` and `verify` as they are now; `allowed` judges principals. `session_s`: the longest time until
    a client must authenticate again. `key` is that of the hashes of passwords; `nonce` makes one.
    """

    mechanisms: tuple[str, ...]
    users: Callable[[], Users]
    verify: Verifier | None
    allowed: Callable[[str], bool]
    session_s: float | None
    key: bytes
    nonce: Callable[[], str]

    def begin(self, mechanism: str, before: Proven | None = None) -> Mechanism | None:
        """None for a mechanism that is not enabled. `before`: proven before on the connection."""
        if mechanism not in self.mechanisms:
            return None
        if mechanism == "PLAIN":
            return Plain(self.users(), self.key, before)
        if mechanism == "OAUTHBEARER":
            assert self.verify is not None
            return Bearer(self.verify)
        return Scram(self.users(), mechanism, self.nonce())

    def judge(self, verdict: Verdict) -> Verdict:
        """A user that is proven may still not use the cluster."""
        if isinstance(verdict, Proven) and not self.allowed(principal_of(verdict.user)):
            principal = principal_of(verdict.user)
            why = f"{principal} is not in listen_sasl.allow"
            return Failed(MAY_NOT.format(principal), why, verdict.user, FORBIDDEN)
        return verdict

    def lifetime_ms(self, proven: Proven, now: float) -> int:
        """Until the client must authenticate again (KIP-368); 0: never. `now`: seconds since 1970."""
        if self.session_s is None and proven.until is None:
            return 0
        lasts_s = LONGEST_S if proven.until is None else proven.until - now
        own_s = LONGEST_S if self.session_s is None else self.session_s
        return max(1, int(1000 * min(lasts_s, own_s, LONGEST_S)))
