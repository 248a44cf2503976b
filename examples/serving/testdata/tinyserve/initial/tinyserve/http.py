"""As much of HTTP/1.1 as the server needs, on the standard library's streams."""

import asyncio
import json
from http import HTTPStatus


class Refused(Exception):
    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


class Request:
    def __init__(self, method, path, body):
        self.method, self.path, self.body = method, path, body

    def json(self):
        try:
            return json.loads(self.body)
        except ValueError as error:
            raise Refused(400, f"the body is not JSON: {error}") from None


async def read_request(reader):
    line = await reader.readline()
    if not line:
        return None
    method, path, _ = line.decode("latin-1").split(" ", 2)
    length = 0
    while (line := await reader.readline()) not in (b"\r\n", b"\n", b""):
        name, _, value = line.decode("latin-1").partition(":")
        if name.lower() == "content-length":
            length = int(value)
    return Request(method, path.partition("?")[0], await reader.readexactly(length))


def head(status, content_type, *more):
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", f"Content-Type: {content_type}", "Connection: close", *more]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def whole(status, document):
    body = b"" if document is None else json.dumps(document).encode()
    return head(status, "application/json", f"Content-Length: {len(body)}") + body


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


async def serve(host, port, handle):
    """Answers every connection with handle(request, writer), once."""

    async def connection(reader, writer):
        try:
            request = await read_request(reader)
            if request:
                await handle(request, writer)
        except Refused as error:
            writer.write(whole(error.status, {"error": {"message": str(error), "code": error.status}}))
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    return await asyncio.start_server(connection, host, port, backlog=1024)
