"""What the compiled kernels of this package share: a processor instruction, and manners towards other libraries."""

import os
import threading
from collections.abc import Callable
from typing import Any

import numba
from numba import types
from numba.extending import intrinsic

# numba's OpenMP layer shares its thread count with PyTorch, and would change it for whatever is trained in the same
# process. Its own layer does not, but wants one caller at a time.
if "NUMBA_THREADING_LAYER" not in os.environ:
    numba.config.THREADING_LAYER = "workqueue"  # type: ignore[attr-defined]
ONE_CALLER = threading.Lock()


def _popcount_instruction(_typing_context: Any, _word: Any) -> tuple[Any, Callable[..., Any]]:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: list[Any]) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


# Number of ones in a uint64: numba itself has no function for the processor's instruction.
popcount: Any = intrinsic(_popcount_instruction)
