"""Doors for TLS: python -m tests.docs.tls_door CERTIFICATE PORT... passes each on to 127.0.0.2."""

import asyncio
import ssl
import sys


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    except (ConnectionError, ssl.SSLError):
        pass  # the other end has gone
    finally:
        writer.close()


async def serve(certificate: str, ports: list[int]) -> None:
    """Until it is killed."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    for port in ports:

        async def connected(
            reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int = port
        ) -> None:
            inner_reader, inner_writer = await asyncio.open_connection("127.0.0.2", port)
            await asyncio.gather(_pump(reader, inner_writer), _pump(inner_reader, writer))

        await asyncio.start_server(connected, ["127.0.0.1", "10.0.0.1", "10.0.0.2"], port, ssl=context)
    print("open", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], [int(port) for port in sys.argv[2:]]))
