"""An object store of the tests: moto's S3 server, behind a ``StoreProxy``.

The server is a process of its own, which ends with its standard input. So its warnings are its
own, and it takes no time of the proxy's threads.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from store_proxy import StoreProxy

KEY = "test-key"
SECRET = "secret-that-no-text-may-hold"

_SERVER = """
import sys
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
server.stop()
"""


@contextmanager
def served() -> Iterator[int]:
    """Runs the server; its port."""
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", _SERVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as server:
        try:
            assert server.stdout is not None
            line = server.stdout.readline()
            assert line, "moto's server did not start"
            yield int(line)
        finally:
            server.kill()


class Store:
    """A bucket. ``proxy`` stands in front of it; the methods here go past it."""

    def __init__(self, port: int, bucket: str) -> None:
        import boto3

        self.bucket = bucket
        self.client: Any = boto3.client(
            "s3",
            endpoint_url=f"http://127.0.0.1:{port}",
            aws_access_key_id=KEY,
            aws_secret_access_key=SECRET,
            region_name="us-east-1",
        )
        self.client.create_bucket(Bucket=bucket)
        self.proxy = StoreProxy(("127.0.0.1", port))

    def close(self) -> None:
        self.client.close()
        self.proxy.close()

    @property
    def env(self) -> dict[str, str]:
        """Where it is, as clients read it."""
        return {
            "AWS_ENDPOINT_URL": self.proxy.url,
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
            "AWS_DEFAULT_REGION": "us-east-1",
            "NO_PROXY": "127.0.0.1",
            "no_proxy": "127.0.0.1",
        }

    def url(self, prefix: str) -> str:
        return f"s3://{self.bucket}/{prefix}"

    def put(self, key: str, data: bytes) -> None:
        self.client.put_object(Bucket=self.bucket, Key=key, Body=data)

    def get(self, key: str) -> bytes:
        found: bytes = self.client.get_object(Bucket=self.bucket, Key=key)["Body"].read()
        return found

    def delete(self, key: str) -> None:
        self.client.delete_object(Bucket=self.bucket, Key=key)

    def upload(self, folder: Path, prefix: str) -> str:
        """Puts the files of a folder there; the address."""
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                self.put(f"{prefix}/{path.relative_to(folder)}", path.read_bytes())
        return self.url(prefix)
