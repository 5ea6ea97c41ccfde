"""The sender of a request that a broker forwards to the controller in an Envelope (KIP-590)."""

from klamm.decoders.payloads.declaration import VERSION, payload
from klamm.decoders.schema import boolean, string

# fmt: off

DEFAULT_PRINCIPAL = payload(
    "DefaultPrincipalData", versions="0", flexible="0+",
    fields=[VERSION, string("type"), string("name"), boolean("token_authenticated")],
)
