from typing import Any

version: str

def arrays(
    n: int,
    x: Any,
    y: Any,
    part_offset: Any = ...,
    part_kind: Any = ...,
    ring_offset: Any = ...,
    vertex_offset: Any = ...,
    /,
) -> object: ...
def from_stream(
    stream: object, column: str | None, settings: dict[str, Any], /
) -> object: ...
def from_array(
    schema: object, array: object, column: str | None, settings: dict[str, Any], /
) -> object: ...
def from_wkb(wkb: list[bytes | None], settings: dict[str, Any], /) -> object: ...
def set_columns(
    layer: object, id: Any, max_distance: Any, on_class: Any, score: Any, /
) -> None: ...
def add_text(layer: object, offset: Any, bytes: Any, /) -> None: ...
def aggregate(
    pairs: object,
    n: int,
    function: str,
    separator: str | None,
    integer: Any,
    real: Any,
    offset: Any,
    bytes: Any,
    is_null: Any,
    /,
) -> tuple[Any, ...]: ...
def count(layer: object, /) -> int: ...
def index(layer: object, settings: dict[str, Any], /) -> object: ...
def backend(index: object, /) -> str: ...
def join(
    index: object, layer: object, /
) -> tuple[object, Any, Any, Any, dict[str, Any], tuple[Any, Any] | None, int]: ...
def validate(
    index: object, layer: object, reference: str | None, /
) -> tuple[int, int, int, int, int, int, int, int, str | None]: ...
def join_device(
    index: object, points: object, n: int, x: int, y: int, stride: int, stream: int, /
) -> tuple[object, int, int, int, int, int]: ...
def wait_device(owner: object, stream: int, /) -> None: ...
def from_dlpack(
    capsule: object, /
) -> tuple[int, tuple[int, int], tuple[int, int], int, int, int, int]: ...
def to_dlpack(
    owner: object, address: int, n: int, code: int, bits: int, device: int, /
) -> object: ...
def settings() -> dict[str, str]: ...
